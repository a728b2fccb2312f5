#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "store/store.hpp"
#include "support/artifacts.hpp"

namespace kiln::test {

/// What every Store promises. An implementation passes it by instantiating the suite with a harness of its own:
///
///   INSTANTIATE_TEST_SUITE_P(Disk, StoreConformance, testing::Values(StoreHarness{"disk", &make_disk_setup}));
class StoreSetup {
 public:
  virtual ~StoreSetup() = default;
  /// A store on the place of this setup. A persistent one finds what an earlier store of the same setup kept.
  virtual std::unique_ptr<Store> open() = 0;
  virtual bool persistent() const = 0;
};

struct StoreHarness {
  std::string name;
  std::function<std::unique_ptr<StoreSetup>()> make;
  /// False for stores that cannot remember closures by themselves: a bundle, say. Then they answer none, and that is
  /// no error.
  bool keeps_closures = true;
  /// False for stores in which equal artifacts must be equal bytes: costs and logs are not in them.
  bool keeps_costs_and_logs = true;
  /// False for stores of other hosts: the places and times of a located closure are this host's, and stay here.
  bool keeps_located_closures = true;

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
  /// What a store that was given this answers.
  Artifact kept(Artifact artifact) const {
    if (!GetParam().keeps_costs_and_logs) {
      artifact.about.cost_ms = 0;
      artifact.about.log.clear();
    }
    return artifact;
  }
  void expect_hit(const Key& key, const Artifact& expected) {
    const auto hit = store_->get(key);
    ASSERT_TRUE(hit.ok()) << hit.error().message;
    ASSERT_TRUE(hit->has_value());
    EXPECT_TRUE(same((*hit)->artifact, kept(expected)));
    EXPECT_NE((*hit)->origin, Origin::Compiled);
  }
  std::vector<Closure> closures(const RequestKey& request, std::size_t limit = Store::kMostClosures) {
    auto found = store_->closures(request, limit);
    EXPECT_TRUE(found.ok());
    return found ? *found : std::vector<Closure>();
  }

  std::unique_ptr<StoreSetup> setup_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreConformance, WhatWasNeverPutIsAbsentAndNoError) {
  const auto hit = store_->get(key_number(1));
  ASSERT_TRUE(hit.ok()) << hit.error().message;
  EXPECT_FALSE(hit->has_value());
  EXPECT_TRUE(closures(request_number(1)).empty());
}

TEST_P(StoreConformance, WhatWasPutComesBackWholeAndOnlyUnderItsKey) {
  const Artifact artifact = artifact_of(key_number(1), 10'000);
  ASSERT_TRUE(store_->put(key_number(1), artifact).ok());
  expect_hit(key_number(1), artifact);
  const auto other = store_->get(key_number(2));
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->has_value());
}

TEST_P(StoreConformance, AnArtifactWithoutBytesEntriesOrLogComesBackAsItIs) {
  Artifact artifact;
  artifact.target = Target::opencl("a device");
  ASSERT_TRUE(store_->put(key_number(3), artifact).ok());
  expect_hit(key_number(3), artifact);
}

TEST_P(StoreConformance, BytesOfEveryKindAndSizeComeBack) {
  for (const std::size_t size : {1, 15, 16, 17, 4095, 4096, 4097, 200'000}) {
    const Key key = key_number(100 + size);
    ASSERT_TRUE(store_->put(key, artifact_of(key, size)).ok());
    expect_hit(key, artifact_of(key, size));
  }
}

TEST_P(StoreConformance, PuttingAgainLeavesAnEquivalentArtifact) {
  const Artifact artifact = artifact_of(key_number(4), 500);
  ASSERT_TRUE(store_->put(key_number(4), artifact).ok());
  ASSERT_TRUE(store_->put(key_number(4), artifact).ok());
  expect_hit(key_number(4), artifact);
}

TEST_P(StoreConformance, BytesThatAreRefusedCountAsAbsentAndOthersDoNot) {
  const Artifact artifact = artifact_of(key_number(6), 500);
  ASSERT_TRUE(store_->put(key_number(6), artifact).ok());
  const auto refused = store_->get_instead(key_number(6), artifact.bytes);
  ASSERT_TRUE(refused.ok());
  EXPECT_FALSE(refused->has_value());
  const auto other = store_->get_instead(key_number(6), Bytes::of("something else"));
  ASSERT_TRUE(other.ok() && other->has_value());
  EXPECT_TRUE((*other)->artifact.bytes == artifact.bytes);
}

TEST_P(StoreConformance, BytesOutliveTheStoreThatServedThem) {
  const Artifact artifact = artifact_of(key_number(5), 5'000);
  ASSERT_TRUE(store_->put(key_number(5), artifact).ok());
  auto hit = store_->get(key_number(5));
  ASSERT_TRUE(hit.ok() && hit->has_value());
  store_.reset();
  EXPECT_TRUE((*hit)->artifact.bytes == artifact.bytes);
}

TEST_P(StoreConformance, AHitTellsNoClosure) {
  Artifact artifact = artifact_of(key_number(6), 100);
  artifact.closure = std::make_shared<const Closure>(closure_number(1));
  ASSERT_TRUE(store_->put(key_number(6), artifact).ok());
  const auto hit = store_->get(key_number(6));
  ASSERT_TRUE(hit.ok() && hit->has_value());
  EXPECT_EQ((*hit)->artifact.closure, nullptr);
}

TEST_P(StoreConformance, ClosuresComeBackNewestFirst) {
  if (!GetParam().keeps_closures) GTEST_SKIP() << "keeps no closures";
  for (const int number : {1, 2, 3}) {
    ASSERT_TRUE(store_->add_closure(request_number(1), closure_number(number)).ok());
  }
  const std::vector<Closure> expected = {closure_number(3), closure_number(2), closure_number(1)};
  EXPECT_EQ(closures(request_number(1)), expected);
  EXPECT_TRUE(closures(request_number(2)).empty());
}

TEST_P(StoreConformance, AClosureSeenAgainMovesToTheFrontAndIsThereOnce) {
  if (!GetParam().keeps_closures) GTEST_SKIP() << "keeps no closures";
  for (const int number : {1, 2, 1, 1}) {
    ASSERT_TRUE(store_->add_closure(request_number(1), closure_number(number)).ok());
  }
  const std::vector<Closure> expected = {closure_number(1), closure_number(2)};
  EXPECT_EQ(closures(request_number(1)), expected);
}

TEST_P(StoreConformance, OnlySoManyClosuresAreKept) {
  if (!GetParam().keeps_closures) GTEST_SKIP() << "keeps no closures";
  for (std::uint64_t number = 0; number < 20; ++number) {
    ASSERT_TRUE(store_->add_closure(request_number(1), closure_number(number)).ok());
  }
  const auto found = closures(request_number(1));
  ASSERT_EQ(found.size(), Store::kMostClosures);
  EXPECT_EQ(found.front(), closure_number(19));
  EXPECT_EQ(found.back(), closure_number(4));
}

TEST_P(StoreConformance, AsManyClosuresAsAskedForAreToldAndTheNewestFirst) {
  if (!GetParam().keeps_closures) GTEST_SKIP() << "keeps no closures";
  // Large ones, as CUB's are: the newest must come back even when it is long.
  for (const int number : {1, 2, 3}) {
    ASSERT_TRUE(store_->add_closure(request_number(1), closure_number(number, 1'000 * number)).ok());
  }
  EXPECT_EQ(closures(request_number(1), 1), std::vector<Closure>{closure_number(3, 3'000)});
  EXPECT_EQ(closures(request_number(1), 2).size(), 2u);
  EXPECT_TRUE(closures(request_number(1), 0).empty());
}

TEST_P(StoreConformance, AnEmptyAndALocatedClosureComeBack) {
  if (!GetParam().keeps_closures) GTEST_SKIP() << "keeps no closures";
  Closure located = closure_number(1);
  located.located = true;
  located.working_directory = "/somewhere";
  located.root_paths = {"/a", "/b"};
  ASSERT_TRUE(store_->add_closure(request_number(1), Closure()).ok());
  ASSERT_TRUE(store_->add_closure(request_number(1), located).ok());
  std::vector<Closure> expected = {located, Closure()};
  if (!GetParam().keeps_located_closures) expected.erase(expected.begin());
  EXPECT_EQ(closures(request_number(1)), expected);
}

TEST_P(StoreConformance, WhatAPersistentStoreKeptIsThereForTheNext) {
  if (!setup_->persistent()) GTEST_SKIP() << "not persistent";
  const Artifact artifact = artifact_of(key_number(7), 3'000);
  ASSERT_TRUE(store_->put(key_number(7), artifact).ok());
  ASSERT_TRUE(store_->add_closure(request_number(7), closure_number(7)).ok());
  reopen();
  expect_hit(key_number(7), artifact);
  if (GetParam().keeps_closures) {
    EXPECT_EQ(closures(request_number(7)), std::vector<Closure>{closure_number(7)});
  }
}

TEST_P(StoreConformance, ManyThreadsMayUseItAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        const Key key = key_number((thread + i) % 10);
        if (i % 3 == 0 && !store_->put(key, artifact_of(key, 2'000))) ++wrong;
        if (i % 10 == 0 && !store_->add_closure(request_number(i % 2), closure_number(i))) ++wrong;
        const auto hit = store_->get(key);
        if (!hit || (*hit && !same((*hit)->artifact, kept(artifact_of(key, 2'000))))) ++wrong;
        if (!store_->closures(request_number(i % 2), 1)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(StoreConformance, ItHasANameForPeople) { EXPECT_FALSE(store_->describe().empty()); }

}  // namespace kiln::test
