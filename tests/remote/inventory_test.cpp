#include "remote/inventory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "hostile_scenarios.hpp"

namespace kiln::test {
namespace {

using Shelf = Depot::Shelf;
using namespace std::chrono_literals;

constexpr auto kNow = std::chrono::hours(24 * 365 * 50);

class InventoryTest : public testing::Test {
 protected:
  // As CI or a host publishes it, so long ago. Returns the content's name.
  Digest publish(const Key& key, std::size_t size, Depot::Time age, bool live = false) {
    RemoteStore store({.depot = depot_,
                       .policy = policy_,
                       .signer = live ? trust_.live_signer() : trust_.ci_signer(),
                       .observer = {}});
    EXPECT_TRUE(store.put(key, artifact_of(key, size)).ok());
    const auto written = depot_->written();
    const Digest content = written[written.size() - 2].second;
    depot_->set_modified(Shelf::Action, key.digest, kNow - age);
    depot_->set_modified(Shelf::Content, content, kNow - age);
    return content;
  }
  RemoteInventory take(bool contents = true) {
    return take_inventory(*depot_, *policy_, system_clock().wall(), contents).value();
  }
  static const RemoteInventory::Entry& of(const RemoteInventory& inventory, const Key& key) {
    const auto found = std::find_if(inventory.entries.begin(), inventory.entries.end(),
                                    [&](const auto& entry) { return entry.key == key; });
    EXPECT_NE(found, inventory.entries.end());
    return *found;
  }
  RemoteCleaned cleaned(const RemoteCleaning& cleaning) { return clean(*depot_, *policy_, kNow, cleaning).value(); }
  bool has(Shelf shelf, const Digest& name) const { return !depot_->body(shelf, name).empty(); }

  TrustRig trust_;
  std::shared_ptr<const TrustPolicy> policy_ = std::make_shared<const TrustPolicy>(trust_.policy());
  std::shared_ptr<MemoryDepot> depot_ = std::make_shared<MemoryDepot>();
};

TEST_F(InventoryTest, ItSaysWhoPublishedWhatAndWhatIsUnused) {
  publish(key_number(1), 1'000, 2h);
  publish(key_number(2), 100, 1h, true);
  depot_->set(Shelf::Content, sha256("left over"), "left over");
  RemoteStore store({.depot = depot_, .policy = policy_, .signer = trust_.ci_signer(), .observer = {}});
  ASSERT_TRUE(store.add_closure(request_number(1), closure_number(1)).ok());
  const RemoteInventory inventory = take();
  ASSERT_EQ(inventory.entries.size(), 2u);
  const auto& ci = of(inventory, key_number(1));
  EXPECT_EQ(ci.name_space, "acme");
  EXPECT_EQ(ci.epoch, TrustRig::kEpoch);
  EXPECT_FALSE(ci.live);
  EXPECT_EQ(ci.fault, "");
  EXPECT_GT(ci.bytes, 1'000u);
  EXPECT_EQ(ci.modified, kNow - 2h);
  const auto& live = of(inventory, key_number(2));
  EXPECT_EQ(live.name_space, "acme/live");
  EXPECT_TRUE(live.live);
  EXPECT_EQ(live.fault, "");
  EXPECT_EQ(inventory.hints, 1u);
  EXPECT_GT(inventory.hint_bytes, 0u);
  EXPECT_EQ(inventory.unused, 1u);
  EXPECT_EQ(inventory.unused_bytes, 9u);
}

TEST_F(InventoryTest, ItJudgesEveryBodyAsAReaderWould) {
  for (const Scenario& scenario : all_scenarios()) {
    Stage stage;
    scenario.plant(stage);
    const auto inventory = take_inventory(*stage.depot, stage.policy, system_clock().wall(), true);
    ASSERT_TRUE(inventory.ok()) << scenario.name;
    // Where closures cannot be told from entries they are judged as such, and what is rejected either way stays so.
    const bool hints = scenario.reach == Reach::Hints;
    const Digest place = hints ? closures_place(stage.request) : stage.key.digest;
    const auto& entry = of(*inventory, Key{place});
    EXPECT_NE(entry.fault, "") << scenario.name;
    if (!hints && scenario.name != "closures_in_place_of_a_statement") {
      EXPECT_EQ(entry.fault, scenario.word) << scenario.name;
    }
  }
}

TEST_F(InventoryTest, WithoutContentsNoneIsRead) {
  const Digest content = publish(key_number(1), 1'000, 2h);
  const int before = depot_->reads(Shelf::Content);
  EXPECT_EQ(take(false).entries[0].fault, "");
  EXPECT_EQ(depot_->reads(Shelf::Content), before);
  ASSERT_TRUE(depot_->remove(Shelf::Content, content, 1s).ok());
  EXPECT_EQ(take(false).entries[0].fault, "content_missing");
}

TEST_F(InventoryTest, CleaningTakesContentsThatNobodyStatesOnceTheyAreOld) {
  const Digest kept = publish(key_number(1), 1'000, 9h);
  const Digest old = sha256("old");
  const Digest young = sha256("young");
  depot_->set(Shelf::Content, old, "old");
  depot_->set_modified(Shelf::Content, old, kNow - 2h);
  depot_->set(Shelf::Content, young, "young");
  depot_->set_modified(Shelf::Content, young, kNow - 30min);
  const RemoteCleaned done = cleaned({});
  EXPECT_EQ(done.entries, 0u);
  EXPECT_EQ(done.contents, 1u);
  EXPECT_EQ(done.bytes, 3u);
  EXPECT_TRUE(has(Shelf::Content, kept));
  EXPECT_TRUE(has(Shelf::Content, young));
  EXPECT_FALSE(has(Shelf::Content, old));
}

TEST_F(InventoryTest, CleaningLeavesWhatOthersBelieve) {
  publish(key_number(1), 1'000, 9h);
  policy_ = std::make_shared<const TrustPolicy>();
  EXPECT_EQ(take().entries[0].fault, "unknown_key");
  const RemoteCleaned done = cleaned({});
  EXPECT_EQ(done.entries, 0u);
  EXPECT_EQ(done.contents, 0u);
}

TEST_F(InventoryTest, CleaningByEpochTakesTheOldOnesOfItsNamespace) {
  publish(key_number(1), 1'000, 9h);
  publish(key_number(2), 1'000, 9h, true);
  EXPECT_EQ(cleaned({.least_epoch = TrustRig::kEpoch}).entries, 0u);
  EXPECT_EQ(cleaned({.least_epoch = TrustRig::kEpoch + 1, .name_space = "globex"}).entries, 0u);
  const RemoteCleaned done = cleaned({.least_epoch = TrustRig::kEpoch + 1, .name_space = "acme"});
  EXPECT_EQ(done.entries, 1u);
  EXPECT_EQ(done.contents, 1u);
  ASSERT_EQ(take().entries.size(), 1u);
  EXPECT_TRUE(take().entries[0].live);
}

TEST_F(InventoryTest, CleaningBySizeTakesTheOldest) {
  const Digest oldest = publish(key_number(1), 10'000, 9h);
  publish(key_number(2), 10'000, 8h);
  publish(key_number(3), 10'000, 7h);
  EXPECT_EQ(cleaned({.most_bytes = 100'000}).entries, 0u);
  const RemoteCleaned done = cleaned({.most_bytes = 25'000});
  EXPECT_EQ(done.entries, 1u);
  EXPECT_EQ(done.contents, 1u);
  EXPECT_FALSE(has(Shelf::Content, oldest));
  EXPECT_FALSE(has(Shelf::Action, key_number(1).digest));
  EXPECT_TRUE(has(Shelf::Action, key_number(2).digest));
  EXPECT_TRUE(has(Shelf::Action, key_number(3).digest));
}

}  // namespace
}  // namespace kiln::test
