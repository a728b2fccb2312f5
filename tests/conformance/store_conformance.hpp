// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "cache/store.hpp"
#include "support/fixtures/artifacts.hpp"

namespace kiln::test {

/// Requirements of every `Store` implementation. An implementation instantiates the suite with its own harness:
///
///   INSTANTIATE_TEST_SUITE_P(Disk, StoreConformance, testing::Values(StoreHarness{"disk", &make_disk_setup}));
class StoreSetup {
 public:
  virtual ~StoreSetup() = default;
  /// Opens a store at the location of this setup. A persistent store finds the entries of an earlier store of the same
  /// setup.
  virtual std::unique_ptr<Store> open() = 0;
  virtual bool persistent() const = 0;
};

struct StoreHarness {
  std::string name;
  std::function<std::unique_ptr<StoreSetup>()> make;
  /// False for stores that cannot store dependency sets by themselves, such as a bundle. They return none, without an
  /// error.
  bool keeps_dependency_sets = true;
  /// False for stores that require equal bytes for equal artifacts: they store no costs and logs.
  bool keeps_costs_and_logs = true;
  /// False for stores of other hosts: the paths and times of a located dependency set belong to this host and are not
  /// sent.
  bool keeps_located_dependency_sets = true;

  friend std::ostream& operator<<(std::ostream& out, const StoreHarness& harness) { return out << harness.name; }
};

class StoreConformance : public testing::TestWithParam<StoreHarness> {
 protected:
  void SetUp() override {
    setup_ = GetParam().make();
    store_ = setup_->open();
  }
  void reopen() {
    store_.reset();
    store_ = setup_->open();
  }
  /// Returns the artifact that the store is expected to return for `artifact`.
  Artifact kept(Artifact artifact) const {
    if (!GetParam().keeps_costs_and_logs) {
      artifact.metadata.cost_ms = 0;
      artifact.metadata.log.clear();
    }
    return artifact;
  }
  void expect_hit(const ArtifactKey& key, const Artifact& expected) {
    const auto hit = store_->get(key, {});
    ASSERT_TRUE(hit.has_value()) << hit.error().message;
    ASSERT_TRUE(hit->has_value());
    EXPECT_TRUE(same((*hit)->artifact, kept(expected)));
    EXPECT_NE((*hit)->origin, Origin::Compiled);
  }
  std::vector<DependencySet> dependency_sets(const RequestKey& request, std::size_t limit = Store::kMaxDependencySets) {
    auto found = store_->dependency_sets(request, limit, {});
    EXPECT_TRUE(found.has_value());
    return found ? *found : std::vector<DependencySet>();
  }

  std::unique_ptr<StoreSetup> setup_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreConformance, MissIsNoError) {
  const auto hit = store_->get(key_number(1), {});
  ASSERT_TRUE(hit.has_value()) << hit.error().message;
  EXPECT_FALSE(hit->has_value());
  EXPECT_TRUE(dependency_sets(request_number(1)).empty());
}

TEST_P(StoreConformance, ArtifactRoundTripsUnderItsKeyOnly) {
  const Artifact artifact = artifact_of(key_number(1), 10'000);
  ASSERT_TRUE(store_->put(key_number(1), artifact, {}).has_value());
  expect_hit(key_number(1), artifact);
  const auto other = store_->get(key_number(2), {});
  ASSERT_TRUE(other.has_value());
  EXPECT_FALSE(other->has_value());
}

TEST_P(StoreConformance, ArtifactWithoutBytesEntriesOrLogRoundTrips) {
  Artifact artifact;
  artifact.target = Target::opencl("a device");
  ASSERT_TRUE(store_->put(key_number(3), artifact, {}).has_value());
  expect_hit(key_number(3), artifact);
}

TEST_P(StoreConformance, BytesOfAnyContentAndSizeRoundTrip) {
  for (const std::size_t size : {1, 15, 16, 17, 4095, 4096, 4097, 200'000}) {
    const ArtifactKey key = key_number(100 + size);
    ASSERT_TRUE(store_->put(key, artifact_of(key, size), {}).has_value());
    expect_hit(key, artifact_of(key, size));
  }
}

TEST_P(StoreConformance, PuttingAgainKeepsEquivalentArtifact) {
  const Artifact artifact = artifact_of(key_number(4), 500);
  ASSERT_TRUE(store_->put(key_number(4), artifact, {}).has_value());
  ASSERT_TRUE(store_->put(key_number(4), artifact, {}).has_value());
  expect_hit(key_number(4), artifact);
}

TEST_P(StoreConformance, RejectedBytesAreMissAndOthersAreNot) {
  const Artifact artifact = artifact_of(key_number(6), 500);
  ASSERT_TRUE(store_->put(key_number(6), artifact, {}).has_value());
  const auto rejected = store_->get_excluding(key_number(6), artifact.bytes, {});
  ASSERT_TRUE(rejected.has_value());
  EXPECT_FALSE(rejected->has_value());
  const auto other = store_->get_excluding(key_number(6), Bytes::of("something else"), {});
  ASSERT_TRUE(other.has_value() && other->has_value());
  EXPECT_TRUE((*other)->artifact.bytes == artifact.bytes);
}

TEST_P(StoreConformance, BytesOutliveStore) {
  const Artifact artifact = artifact_of(key_number(5), 5'000);
  ASSERT_TRUE(store_->put(key_number(5), artifact, {}).has_value());
  auto hit = store_->get(key_number(5), {});
  ASSERT_TRUE(hit.has_value() && hit->has_value());
  store_.reset();
  EXPECT_TRUE((*hit)->artifact.bytes == artifact.bytes);
}

TEST_P(StoreConformance, HitHasNoDependencySet) {
  Artifact artifact = artifact_of(key_number(6), 100);
  artifact.dependency_set = std::make_shared<const DependencySet>(dependency_set_number(1));
  ASSERT_TRUE(store_->put(key_number(6), artifact, {}).has_value());
  const auto hit = store_->get(key_number(6), {});
  ASSERT_TRUE(hit.has_value() && hit->has_value());
  EXPECT_EQ((*hit)->artifact.dependency_set, nullptr);
}

TEST_P(StoreConformance, DependencySetsAreReturnedNewestFirst) {
  if (!GetParam().keeps_dependency_sets) GTEST_SKIP() << "stores no dependency sets";
  for (const int number : {1, 2, 3}) {
    ASSERT_TRUE(store_->add_dependency_set(request_number(1), dependency_set_number(number), {}).has_value());
  }
  const std::vector<DependencySet> expected = {dependency_set_number(3), dependency_set_number(2),
                                               dependency_set_number(1)};
  EXPECT_EQ(dependency_sets(request_number(1)), expected);
  EXPECT_TRUE(dependency_sets(request_number(2)).empty());
}

TEST_P(StoreConformance, RepeatedDependencySetMovesToFrontOnce) {
  if (!GetParam().keeps_dependency_sets) GTEST_SKIP() << "stores no dependency sets";
  for (const int number : {1, 2, 1, 1}) {
    ASSERT_TRUE(store_->add_dependency_set(request_number(1), dependency_set_number(number), {}).has_value());
  }
  const std::vector<DependencySet> expected = {dependency_set_number(1), dependency_set_number(2)};
  EXPECT_EQ(dependency_sets(request_number(1)), expected);
}

TEST_P(StoreConformance, NumberOfDependencySetsIsLimited) {
  if (!GetParam().keeps_dependency_sets) GTEST_SKIP() << "stores no dependency sets";
  for (std::uint64_t number = 0; number < 20; ++number) {
    ASSERT_TRUE(store_->add_dependency_set(request_number(1), dependency_set_number(number), {}).has_value());
  }
  const auto found = dependency_sets(request_number(1));
  ASSERT_EQ(found.size(), Store::kMaxDependencySets);
  EXPECT_EQ(found.front(), dependency_set_number(19));
  EXPECT_EQ(found.back(), dependency_set_number(4));
}

TEST_P(StoreConformance, ReturnsRequestedNumberOfDependencySetsNewestFirst) {
  if (!GetParam().keeps_dependency_sets) GTEST_SKIP() << "stores no dependency sets";
  // Large dependency sets, like those of CUB. The newest must be returned even if it is long.
  for (const int number : {1, 2, 3}) {
    ASSERT_TRUE(
        store_->add_dependency_set(request_number(1), dependency_set_number(number, 1'000 * number), {}).has_value());
  }
  EXPECT_EQ(dependency_sets(request_number(1), 1), std::vector<DependencySet>{dependency_set_number(3, 3'000)});
  EXPECT_EQ(dependency_sets(request_number(1), 2).size(), 2u);
  EXPECT_TRUE(dependency_sets(request_number(1), 0).empty());
}

TEST_P(StoreConformance, EmptyAndLocatedDependencySetsRoundTrip) {
  if (!GetParam().keeps_dependency_sets) GTEST_SKIP() << "stores no dependency sets";
  DependencySet located = dependency_set_number(1);
  located.embeds_paths = true;
  located.working_directory = "/somewhere";
  located.root_paths = {"/a", "/b"};
  ASSERT_TRUE(store_->add_dependency_set(request_number(1), DependencySet(), {}).has_value());
  ASSERT_TRUE(store_->add_dependency_set(request_number(1), located, {}).has_value());
  std::vector<DependencySet> expected = {located, DependencySet()};
  if (!GetParam().keeps_located_dependency_sets) expected.erase(expected.begin());
  EXPECT_EQ(dependency_sets(request_number(1)), expected);
}

TEST_P(StoreConformance, EntriesPersistForNextStore) {
  if (!setup_->persistent()) GTEST_SKIP() << "not persistent";
  const Artifact artifact = artifact_of(key_number(7), 3'000);
  ASSERT_TRUE(store_->put(key_number(7), artifact, {}).has_value());
  ASSERT_TRUE(store_->add_dependency_set(request_number(7), dependency_set_number(7), {}).has_value());
  reopen();
  expect_hit(key_number(7), artifact);
  if (GetParam().keeps_dependency_sets) {
    EXPECT_EQ(dependency_sets(request_number(7)), std::vector<DependencySet>{dependency_set_number(7)});
  }
}

TEST_P(StoreConformance, ManyThreadsCanUseStoreConcurrently) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        const ArtifactKey key = key_number((thread + i) % 10);
        if (i % 3 == 0 && !store_->put(key, artifact_of(key, 2'000), {})) ++wrong;
        if (i % 10 == 0 && !store_->add_dependency_set(request_number(i % 2), dependency_set_number(i), {})) ++wrong;
        const auto hit = store_->get(key, {});
        if (!hit || (*hit && !same((*hit)->artifact, kept(artifact_of(key, 2'000))))) ++wrong;
        if (!store_->dependency_sets(request_number(i % 2), 1, {})) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(StoreConformance, HasDescription) { EXPECT_FALSE(store_->describe().empty()); }

}  // namespace kiln::test
