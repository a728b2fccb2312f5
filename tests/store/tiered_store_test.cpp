#include "store/tiered_store.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "support/artifacts.hpp"
#include "support/event_log.hpp"
#include "support/memory_store.hpp"

namespace kiln::test {
namespace {

using Distance = TieredStore::Distance;

/// A store that fails as it is told to.
class BrokenStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const Key&) override { return failure(Code::Io, message); }
  Status put(const Key&, const Artifact&) override { return failure(Code::Io, message); }
  Result<std::vector<Closure>> closures(const RequestKey&, std::size_t) override { return failure(Code::Io, message); }
  Status add_closure(const RequestKey&, const Closure&) override { return failure(Code::Io, message); }
  std::string describe() const override { return "broken"; }

  std::string message = "no";
};

class ReadOnlyStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const Key& key) override { return inside.get(key); }
  Status put(const Key&, const Artifact&) override {
    ++writes;
    return failure(Code::Refused, "read only");
  }
  Result<std::vector<Closure>> closures(const RequestKey& request, std::size_t limit) override {
    ++asked;
    return inside.closures(request, limit);
  }
  Status add_closure(const RequestKey&, const Closure&) override {
    ++writes;
    return failure(Code::Refused, "read only");
  }
  bool writable() override { return false; }
  std::string describe() const override { return "read only"; }

  MemoryStore inside;
  int writes = 0;
  int asked = 0;
};

class Tiered : public testing::Test {
 protected:
  TieredStore tiers(std::vector<TieredStore::Tier> list) { return TieredStore(std::move(list), events_.observer()); }
  static bool has(Store& store, int number) { return (*store.get(key_number(number))).has_value(); }

  EventLog events_;
  std::shared_ptr<MemoryStore> near_ = std::make_shared<MemoryStore>();
  std::shared_ptr<MemoryStore> disk_ = std::make_shared<MemoryStore>();
  std::shared_ptr<ReadOnlyStore> image_ = std::make_shared<ReadOnlyStore>();
  std::shared_ptr<MemoryStore> remote_ = std::make_shared<MemoryStore>();
  std::shared_ptr<BrokenStore> broken_ = std::make_shared<BrokenStore>();
};

TEST_F(Tiered, WhatOneTierHasAndADriverRefusedIsAskedOfTheNext) {
  TieredStore store = tiers({{disk_, Distance::Disk}, {remote_, Distance::Remote}});
  const Artifact bad = artifact_of(key_number(1), 10);
  const Artifact good = artifact_of(key_number(2), 20);
  ASSERT_TRUE(disk_->put(key_number(1), bad).ok());
  ASSERT_TRUE(remote_->put(key_number(1), good).ok());
  const auto hit = store.get_instead(key_number(1), bad.bytes);
  ASSERT_TRUE(hit.ok() && hit->has_value());
  EXPECT_TRUE((*hit)->artifact.bytes == good.bytes);
  EXPECT_TRUE((*disk_->get(key_number(1)))->artifact.bytes == good.bytes) << "the nearer tier keeps the good one";
}

TEST_F(Tiered, AHitFarAwayIsKeptInEveryNearerStoreAndInNoneThatIsAsFar) {
  TieredStore store = tiers(
      {{near_, Distance::Memory}, {disk_, Distance::Disk}, {image_, Distance::Disk}, {remote_, Distance::Remote}});
  ASSERT_TRUE(remote_->put(key_number(1), artifact_of(key_number(1), 100)).ok());
  ASSERT_TRUE(image_->inside.put(key_number(2), artifact_of(key_number(2), 100)).ok());
  EXPECT_TRUE(has(store, 1));
  EXPECT_TRUE(has(*near_, 1));
  EXPECT_TRUE(has(*disk_, 1));
  EXPECT_TRUE(has(store, 2));
  EXPECT_TRUE(has(*near_, 2));
  EXPECT_FALSE(has(*disk_, 2));
  EXPECT_EQ(image_->writes, 0);
}

TEST_F(Tiered, PutGoesToEveryWritableStoreAndSucceedsIfOneTookIt) {
  TieredStore store = tiers({{broken_, Distance::Disk}, {disk_, Distance::Disk}, {image_, Distance::Disk}});
  ASSERT_TRUE(store.put(key_number(1), artifact_of(key_number(1), 100)).ok());
  EXPECT_TRUE(has(*disk_, 1));
  EXPECT_EQ(image_->writes, 0);
  EXPECT_EQ(events_.count(Event::Kind::CacheUnavailable), 1u);
}

TEST_F(Tiered, PutFailsWithTheReasonWhereNoStoreTookIt) {
  TieredStore broken = tiers({{broken_, Distance::Disk}, {image_, Distance::Disk}});
  const Status status = broken.put(key_number(1), artifact_of(key_number(1), 100));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "no");
  TieredStore sealed = tiers({{image_, Distance::Disk}});
  EXPECT_FALSE(sealed.writable());
  EXPECT_FALSE(sealed.add_closure(request_number(1), closure_number(1)).ok());
}

TEST_F(Tiered, AStoreThatFailsIsToldOfOnceAndTheNextIsAsked) {
  TieredStore store = tiers({{broken_, Distance::Disk}, {disk_, Distance::Disk}});
  ASSERT_TRUE(disk_->put(key_number(1), artifact_of(key_number(1), 100)).ok());
  ASSERT_TRUE(disk_->add_closure(request_number(1), closure_number(1)).ok());
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(has(store, 1));
    EXPECT_EQ(store.closures(request_number(1))->size(), 1u);
  }
  ASSERT_EQ(events_.count(Event::Kind::CacheUnavailable), 1u);
  EXPECT_EQ(events_.of(Event::Kind::CacheUnavailable)[0].message, "no");
  EXPECT_EQ(events_.of(Event::Kind::CacheUnavailable)[0].origin, "broken");
  broken_->message = "something else";
  EXPECT_TRUE(has(store, 1));
  EXPECT_EQ(events_.count(Event::Kind::CacheUnavailable), 2u);
}

TEST_F(Tiered, ClosuresOfAllStoresAreMergedEachOnceAndNotMoreThanAskedFor) {
  TieredStore store = tiers({{disk_, Distance::Disk}, {image_, Distance::Disk}});
  for (const int number : {2, 1}) ASSERT_TRUE(disk_->add_closure(request_number(1), closure_number(number)).ok());
  for (int number = 20; number > 0; --number) {
    ASSERT_TRUE(image_->inside.add_closure(request_number(1), closure_number(number)).ok());
  }
  const auto merged = *store.closures(request_number(1));
  ASSERT_EQ(merged.size(), Store::kMostClosures);
  for (std::size_t i = 0; i < merged.size(); ++i) EXPECT_EQ(merged[i], closure_number(i + 1));
  image_->asked = 0;
  EXPECT_EQ(*store.closures(request_number(1), 1), std::vector<Closure>{closure_number(1)});
  EXPECT_EQ(image_->asked, 0);
}

TEST_F(Tiered, ClosuresFoundFarAwayAreKeptNearerInTheirOrder) {
  TieredStore store = tiers({{near_, Distance::Memory}, {image_, Distance::Disk}});
  for (const int number : {2, 1}) {
    ASSERT_TRUE(image_->inside.add_closure(request_number(1), closure_number(number)).ok());
  }
  const std::vector<Closure> expected = {closure_number(1), closure_number(2)};
  EXPECT_EQ(*store.closures(request_number(1)), expected);
  EXPECT_EQ(*near_->closures(request_number(1)), expected);
}

TEST_F(Tiered, WhatCameFromAfarIsKeptWhereCopiesAreTakenAndWhatWasCompiledWherePutsAre) {
  // As on a host of a fleet: its own cache, what it fetched, and what all share.
  const auto own = near_;
  const auto fetched = disk_;
  TieredStore store =
      tiers({{own, Distance::Disk, true, false}, {fetched, Distance::Disk, false, true}, {remote_, Distance::Remote}});
  ASSERT_TRUE(remote_->put(key_number(1), artifact_of(key_number(1), 100)).ok());
  ASSERT_TRUE(remote_->add_closure(request_number(1), closure_number(1)).ok());
  EXPECT_TRUE(has(store, 1));
  EXPECT_EQ(store.closures(request_number(1))->size(), 1U);
  EXPECT_TRUE(has(*fetched, 1));
  EXPECT_FALSE(has(*own, 1)) << "bundles are signed from this one";
  EXPECT_TRUE(own->closures(request_number(1))->empty());
  EXPECT_EQ(fetched->closures(request_number(1))->size(), 1U);

  ASSERT_TRUE(store.put(key_number(2), artifact_of(key_number(2), 100)).ok());
  EXPECT_TRUE(has(*own, 2));
  EXPECT_TRUE(has(*remote_, 2));
  EXPECT_FALSE(has(*fetched, 2));
}

}  // namespace
}  // namespace kiln::test
