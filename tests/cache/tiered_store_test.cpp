// SPDX-License-Identifier: Apache-2.0
#include "cache/tiered_store.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/fakes/memory_store.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/event_log.hpp"

namespace kiln::test {
namespace {

using Distance = TieredStore::Distance;

/// A store that fails on request.
class BrokenStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const ArtifactKey&, const RequestContext&) override {
    return make_error(Code::Io, message);
  }
  Status put(const ArtifactKey&, const Artifact&, const RequestContext&) override {
    return make_error(Code::Io, message);
  }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey&, std::size_t, const RequestContext&) override {
    return make_error(Code::Io, message);
  }
  Status add_dependency_set(const RequestKey&, const DependencySet&, const RequestContext&) override {
    return make_error(Code::Io, message);
  }
  std::string describe() const override { return "broken"; }

  std::string message = "no";
};

class ReadOnlyStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) override {
    return inside.get(key, context);
  }
  Status put(const ArtifactKey&, const Artifact&, const RequestContext&) override {
    ++writes;
    return make_error(Code::Denied, "read only");
  }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                     const RequestContext& context) override {
    ++asked;
    return inside.dependency_sets(request, limit, context);
  }
  Status add_dependency_set(const RequestKey&, const DependencySet&, const RequestContext&) override {
    ++writes;
    return make_error(Code::Denied, "read only");
  }
  bool is_writable() override { return false; }
  std::string describe() const override { return "read only"; }

  MemoryStore inside;
  int writes = 0;
  int asked = 0;
};

class Tiered : public testing::Test {
 protected:
  TieredStore tiers(std::vector<TieredStore::Tier> list) { return TieredStore(std::move(list), events_.emitter()); }
  static bool has(Store& store, int number) { return (*store.get(key_number(number), {})).has_value(); }

  EventLog events_;
  std::shared_ptr<MemoryStore> near_ = std::make_shared<MemoryStore>();
  std::shared_ptr<MemoryStore> disk_ = std::make_shared<MemoryStore>();
  std::shared_ptr<ReadOnlyStore> image_ = std::make_shared<ReadOnlyStore>();
  std::shared_ptr<MemoryStore> remote_ = std::make_shared<MemoryStore>();
  std::shared_ptr<BrokenStore> broken_ = std::make_shared<BrokenStore>();
};

TEST_F(Tiered, QueriesNextTierIfDriverRejectedArtifact) {
  TieredStore store = tiers({{disk_, Distance::Disk}, {remote_, Distance::Remote}});
  const Artifact bad = artifact_of(key_number(1), 10);
  const Artifact good = artifact_of(key_number(2), 20);
  ASSERT_TRUE(disk_->put(key_number(1), bad, {}).has_value());
  ASSERT_TRUE(remote_->put(key_number(1), good, {}).has_value());
  const auto hit = store.get_excluding(key_number(1), bad.bytes, {});
  ASSERT_TRUE(hit.has_value() && hit->has_value());
  EXPECT_TRUE((*hit)->artifact.bytes == good.bytes);
  EXPECT_TRUE((*disk_->get(key_number(1), {}))->artifact.bytes == good.bytes)
      << "the nearer tier stores the usable one";
}

TEST_F(Tiered, CopiesHitIntoNearerStoresOnly) {
  TieredStore store = tiers(
      {{near_, Distance::Memory}, {disk_, Distance::Disk}, {image_, Distance::Disk}, {remote_, Distance::Remote}});
  ASSERT_TRUE(remote_->put(key_number(1), artifact_of(key_number(1), 100), {}).has_value());
  ASSERT_TRUE(image_->inside.put(key_number(2), artifact_of(key_number(2), 100), {}).has_value());
  EXPECT_TRUE(has(store, 1));
  EXPECT_TRUE(has(*near_, 1));
  EXPECT_TRUE(has(*disk_, 1));
  EXPECT_TRUE(has(store, 2));
  EXPECT_TRUE(has(*near_, 2));
  EXPECT_FALSE(has(*disk_, 2));
  EXPECT_EQ(image_->writes, 0);
}

TEST_F(Tiered, PutWritesEveryWritableStoreAndSucceedsIfOneDoes) {
  TieredStore store = tiers({{broken_, Distance::Disk}, {disk_, Distance::Disk}, {image_, Distance::Disk}});
  ASSERT_TRUE(store.put(key_number(1), artifact_of(key_number(1), 100), {}).has_value());
  EXPECT_TRUE(has(*disk_, 1));
  EXPECT_EQ(image_->writes, 0);
  EXPECT_EQ(events_.count(Event::Kind::CacheUnavailable), 1u);
}

TEST_F(Tiered, PutFailsWithReasonIfNoStoreAccepts) {
  TieredStore broken = tiers({{broken_, Distance::Disk}, {image_, Distance::Disk}});
  const Status status = broken.put(key_number(1), artifact_of(key_number(1), 100), {});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "no");
  TieredStore sealed = tiers({{image_, Distance::Disk}});
  EXPECT_FALSE(sealed.is_writable());
  EXPECT_FALSE(sealed.add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
}

TEST_F(Tiered, ReportsFailingStoreOnceAndQueriesNext) {
  TieredStore store = tiers({{broken_, Distance::Disk}, {disk_, Distance::Disk}});
  ASSERT_TRUE(disk_->put(key_number(1), artifact_of(key_number(1), 100), {}).has_value());
  ASSERT_TRUE(disk_->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(has(store, 1));
    EXPECT_EQ(store.dependency_sets(request_number(1), Store::kMaxDependencySets, {})->size(), 1u);
  }
  ASSERT_EQ(events_.count(Event::Kind::CacheUnavailable), 1u);
  EXPECT_EQ(events_.of(Event::Kind::CacheUnavailable)[0].message, "no");
  EXPECT_EQ(events_.of(Event::Kind::CacheUnavailable)[0].origin, "broken");
  broken_->message = "something else";
  EXPECT_TRUE(has(store, 1));
  EXPECT_EQ(events_.count(Event::Kind::CacheUnavailable), 2u);
}

TEST_F(Tiered, MergesDependencySetsWithoutDuplicatesUpToLimit) {
  TieredStore store = tiers({{disk_, Distance::Disk}, {image_, Distance::Disk}});
  for (const int number : {2, 1})
    ASSERT_TRUE(disk_->add_dependency_set(request_number(1), dependency_set_number(number), {}).has_value());
  for (int number = 20; number > 0; --number) {
    ASSERT_TRUE(image_->inside.add_dependency_set(request_number(1), dependency_set_number(number), {}).has_value());
  }
  const auto merged = *store.dependency_sets(request_number(1), Store::kMaxDependencySets, {});
  ASSERT_EQ(merged.size(), Store::kMaxDependencySets);
  for (std::size_t i = 0; i < merged.size(); ++i) EXPECT_EQ(merged[i], dependency_set_number(i + 1));
  image_->asked = 0;
  EXPECT_EQ(*store.dependency_sets(request_number(1), 1, {}), std::vector<DependencySet>{dependency_set_number(1)});
  EXPECT_EQ(image_->asked, 0);
}

TEST_F(Tiered, CopiesDependencySetsIntoNearerStoresInOrder) {
  TieredStore store = tiers({{near_, Distance::Memory}, {image_, Distance::Disk}});
  for (const int number : {2, 1}) {
    ASSERT_TRUE(image_->inside.add_dependency_set(request_number(1), dependency_set_number(number), {}).has_value());
  }
  const std::vector<DependencySet> expected = {dependency_set_number(1), dependency_set_number(2)};
  EXPECT_EQ(*store.dependency_sets(request_number(1), Store::kMaxDependencySets, {}), expected);
  EXPECT_EQ(*near_->dependency_sets(request_number(1), Store::kMaxDependencySets, {}), expected);
}

TEST_F(Tiered, CopiesAndPutsGoToTheTiersThatAcceptThem) {
  // As on a host of a fleet: its own cache, the fetched entries, and the shared store.
  const auto own = near_;
  const auto fetched = disk_;
  TieredStore store =
      tiers({{own, Distance::Disk, true, false}, {fetched, Distance::Disk, false, true}, {remote_, Distance::Remote}});
  ASSERT_TRUE(remote_->put(key_number(1), artifact_of(key_number(1), 100), {}).has_value());
  ASSERT_TRUE(remote_->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  EXPECT_TRUE(has(store, 1));
  EXPECT_EQ(store.dependency_sets(request_number(1), Store::kMaxDependencySets, {})->size(), 1U);
  EXPECT_TRUE(has(*fetched, 1));
  EXPECT_FALSE(has(*own, 1)) << "bundles are signed from this one";
  EXPECT_TRUE(own->dependency_sets(request_number(1), Store::kMaxDependencySets, {})->empty());
  EXPECT_EQ(fetched->dependency_sets(request_number(1), Store::kMaxDependencySets, {})->size(), 1U);

  ASSERT_TRUE(store.put(key_number(2), artifact_of(key_number(2), 100), {}).has_value());
  EXPECT_TRUE(has(*own, 2));
  EXPECT_TRUE(has(*remote_, 2));
  EXPECT_FALSE(has(*fetched, 2));
}

}  // namespace
}  // namespace kiln::test
