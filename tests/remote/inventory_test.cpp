// SPDX-License-Identifier: Apache-2.0
#include "remote/inventory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hostile_scenarios.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;
using namespace std::chrono_literals;

constexpr auto kNow = std::chrono::hours(24 * 365 * 50);

class InventoryTest : public testing::Test {
 protected:
  // Publishes an entry of this age as CI or a live host does. Returns the digest of the content.
  Digest publish(const ArtifactKey& key, std::size_t size, ObjectStore::Time age, bool live = false) {
    RemoteStore store({.object_store = object_store_,
                       .policy = policy_,
                       .signer = live ? trust_.live_signer() : trust_.ci_signer(),
                       .emitter = {}});
    EXPECT_TRUE(store.put(key, artifact_of(key, size), {}).has_value());
    const auto written = object_store_->written();
    const Digest content = written[written.size() - 2].second;
    object_store_->set_modified(Bucket::ActionCache, action_name(live ? "acme/live" : "acme", key), kNow - age);
    object_store_->set_modified(Bucket::Cas, content, kNow - age);
    return content;
  }
  RemoteInventory take(bool contents = true) {
    return read_inventory(*object_store_, *policy_, system_clock().wall(), contents).value();
  }
  static const RemoteInventory::Entry& of(const RemoteInventory& inventory, const ArtifactKey& key) {
    const auto found = std::find_if(inventory.entries.begin(), inventory.entries.end(),
                                    [&](const auto& entry) { return entry.key == key; });
    EXPECT_NE(found, inventory.entries.end());
    return *found;
  }
  RemoteGcResult cleaned(const RemoteGcOptions& cleaning) {
    return collect_remote_garbage(*object_store_, *policy_, kNow, cleaning).value();
  }
  bool has(Bucket bucket, const Digest& name) const { return !object_store_->body(bucket, name).empty(); }

  TrustFixture trust_;
  std::shared_ptr<const TrustPolicy> policy_ = std::make_shared<const TrustPolicy>(trust_.policy());
  std::shared_ptr<MemoryObjectStore> object_store_ = std::make_shared<MemoryObjectStore>();
};

TEST_F(InventoryTest, ListsPublishersAndUnusedContent) {
  publish(key_number(1), 1'000, 2h);
  publish(key_number(2), 100, 1h, true);
  object_store_->set(Bucket::Cas, sha256("left over"), "left over");
  RemoteStore store({.object_store = object_store_, .policy = policy_, .signer = trust_.ci_signer(), .emitter = {}});
  ASSERT_TRUE(store.add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  const RemoteInventory inventory = take();
  ASSERT_EQ(inventory.entries.size(), 2u);
  const auto& ci = of(inventory, key_number(1));
  EXPECT_EQ(ci.name_space, "acme");
  EXPECT_EQ(ci.epoch, TrustFixture::kEpoch);
  EXPECT_FALSE(ci.live);
  EXPECT_EQ(ci.rejection, "");
  EXPECT_GT(ci.bytes, 1'000u);
  EXPECT_EQ(ci.modified, kNow - 2h);
  const auto& live = of(inventory, key_number(2));
  EXPECT_EQ(live.name_space, "acme/live");
  EXPECT_TRUE(live.live);
  EXPECT_EQ(live.rejection, "");
  EXPECT_EQ(inventory.hints, 1u);
  EXPECT_GT(inventory.hint_bytes, 0u);
  EXPECT_EQ(inventory.unused, 1u);
  EXPECT_EQ(inventory.unused_bytes, 9u);
}

TEST_F(InventoryTest, VerifiesObjectsAsReaderDoes) {
  for (const Scenario& scenario : all_scenarios()) {
    Stage stage;
    scenario.plant(stage);
    const auto inventory = read_inventory(*stage.object_store, stage.policy, system_clock().wall(), true);
    ASSERT_TRUE(inventory.has_value()) << scenario.name;
    // Objects that are not recognizable as dependency sets are verified as entries. Both ways reject them.
    const bool hints = scenario.reach == Reach::Hints;
    const Digest place = hints ? hints_digest(stage.request) : action_name("acme", stage.key);
    const auto found = std::find_if(inventory->entries.begin(), inventory->entries.end(),
                                    [&](const auto& each) { return each.name == place; });
    ASSERT_NE(found, inventory->entries.end()) << scenario.name;
    const RemoteInventory::Entry& entry = *found;
    EXPECT_NE(entry.rejection, "") << scenario.name;
    // A complete action of another key is valid in itself, but its object name is wrong.
    if (scenario.name == "the_action_of_another_key") {
      EXPECT_EQ(entry.rejection, "wrong_namespace");
    } else if (!hints && scenario.name != "dependency_sets_instead_of_a_statement") {
      EXPECT_EQ(entry.rejection, scenario.word) << scenario.name;
    }
  }
}

TEST_F(InventoryTest, ReadsContentOnlyOnRequest) {
  const Digest content = publish(key_number(1), 100'000, 2h);
  const int before = object_store_->reads(Bucket::Cas);
  EXPECT_EQ(take(false).entries[0].rejection, "");
  EXPECT_EQ(object_store_->reads(Bucket::Cas), before);
  ASSERT_TRUE(object_store_->remove(Bucket::Cas, content, 1s).has_value());
  EXPECT_EQ(take(false).entries[0].rejection, "content_missing");
}

TEST_F(InventoryTest, VerifiesBothCopiesOfSmallContent) {
  const Digest content = publish(key_number(1), 1'000, 2h);
  const std::string body = object_store_->body(Bucket::Cas, content);
  object_store_->set(Bucket::Cas, content, body + "x");
  EXPECT_EQ(take().entries[0].rejection, "content_mismatch");
  object_store_->set(Bucket::Cas, content, body);
  EXPECT_EQ(take().entries[0].rejection, "");
  const Digest name = action_name("acme", key_number(1));
  ActionResult action = ActionResult::decode(as_bytes(object_store_->body(Bucket::ActionCache, name))).value();
  action.files.front().contents += "x";
  object_store_->set(Bucket::ActionCache, name, action.encode());
  EXPECT_EQ(take().entries[0].rejection, "content_mismatch");
}

TEST_F(InventoryTest, GcRemovesOldUnreferencedContent) {
  const Digest kept = publish(key_number(1), 1'000, 9h);
  const Digest old = sha256("old");
  const Digest young = sha256("young");
  object_store_->set(Bucket::Cas, old, "old");
  object_store_->set_modified(Bucket::Cas, old, kNow - 2h);
  object_store_->set(Bucket::Cas, young, "young");
  object_store_->set_modified(Bucket::Cas, young, kNow - 30min);
  const RemoteGcResult done = cleaned({});
  EXPECT_EQ(done.entries, 0u);
  EXPECT_EQ(done.contents, 1u);
  EXPECT_EQ(done.bytes, 3u);
  EXPECT_TRUE(has(Bucket::Cas, kept));
  EXPECT_TRUE(has(Bucket::Cas, young));
  EXPECT_FALSE(has(Bucket::Cas, old));
}

TEST_F(InventoryTest, GcKeepsEntriesThatOtherPoliciesTrust) {
  publish(key_number(1), 1'000, 9h);
  policy_ = std::make_shared<const TrustPolicy>();
  EXPECT_EQ(take().entries[0].rejection, "unknown_key");
  const RemoteGcResult done = cleaned({});
  EXPECT_EQ(done.entries, 0u);
  EXPECT_EQ(done.contents, 0u);
}

TEST_F(InventoryTest, GcByEpochRemovesOldEntriesOfNamespace) {
  publish(key_number(1), 1'000, 9h);
  publish(key_number(2), 1'000, 9h, true);
  EXPECT_EQ(cleaned({.min_epoch = TrustFixture::kEpoch}).entries, 0u);
  EXPECT_EQ(cleaned({.min_epoch = TrustFixture::kEpoch + 1, .name_space = "globex"}).entries, 0u);
  const RemoteGcResult done = cleaned({.min_epoch = TrustFixture::kEpoch + 1, .name_space = "acme"});
  EXPECT_EQ(done.entries, 1u);
  EXPECT_EQ(done.contents, 1u);
  ASSERT_EQ(take().entries.size(), 1u);
  EXPECT_TRUE(take().entries[0].live);
}

TEST_F(InventoryTest, GcBySizeRemovesOldest) {
  const Digest oldest = publish(key_number(1), 10'000, 9h);
  publish(key_number(2), 10'000, 8h);
  publish(key_number(3), 10'000, 7h);
  EXPECT_EQ(cleaned({.max_bytes = 100'000}).entries, 0u);
  const RemoteGcResult done = cleaned({.max_bytes = 55'000});
  EXPECT_EQ(done.entries, 1u);
  EXPECT_EQ(done.contents, 1u);
  EXPECT_FALSE(has(Bucket::Cas, oldest));
  EXPECT_FALSE(has(Bucket::ActionCache, action_name("acme", key_number(1))));
  EXPECT_TRUE(has(Bucket::ActionCache, action_name("acme", key_number(2))));
  EXPECT_TRUE(has(Bucket::ActionCache, action_name("acme", key_number(3))));
}

TEST_F(InventoryTest, GcReportsFailedRemoval) {
  for (const Bucket denied : {Bucket::ActionCache, Bucket::Cas}) {
    publish(key_number(1), 10'000, 9h);
    object_store_->deny_removal(denied);
    const auto done = collect_remote_garbage(*object_store_, *policy_, kNow, {.max_bytes = 1});
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().message, "the server denies the removal");
  }
}

}  // namespace
}  // namespace kiln::test
