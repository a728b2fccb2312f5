#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "hostile_scenarios.hpp"
#include "remote/guarded_store.hpp"
#include "support/event_log.hpp"

namespace kiln::test {
namespace {

using Shelf = Depot::Shelf;

// What a host that asks gets to see.
struct Outcome {
  bool served = false;
  Code code = Code::Internal;
  std::vector<Event> events;
  int contents_read = 0;
};

Outcome ask(const Stage& stage, Reach reach) {
  EventLog log;
  RemoteStore store({.depot = stage.depot,
                     .policy = std::make_shared<const TrustPolicy>(stage.policy),
                     .signer = nullptr,
                     .observer = log.observer()});
  Outcome outcome;
  if (reach == Reach::Hints) {
    const auto closures = store.closures(stage.request);
    outcome.served = closures && !closures->empty();
    if (!closures) outcome.code = closures.error().code;
  } else {
    const auto hit = store.get(stage.key);
    outcome.served = hit && hit->has_value();
    if (!hit) outcome.code = hit.error().code;
  }
  outcome.events = log.of(Event::Kind::RemoteRefused);
  outcome.contents_read = stage.depot->reads(Shelf::Content);
  return outcome;
}

// What a server may well have: it forgets, and it serves hosts with other policies.
bool is_no_fault_of_servers(const std::string& word) {
  const std::set<std::string> words = {"content_missing", "unknown_key",   "revoked_key",
                                       "other_namespace", "old_epoch",     "future_epoch",
                                       "live_not_named",  "not_certified", "certificate_expired"};
  return words.contains(word);
}

bool rejected_as_told(const Scenario& scenario) {
  SCOPED_TRACE(scenario.name);
  Stage stage;
  scenario.plant(stage);
  const Outcome outcome = ask(stage, scenario.reach);
  EXPECT_FALSE(outcome.served);
  // By which a guard knows that the server answered what it should not have; one that forgot something has not.
  const bool told = is_no_fault_of_servers(scenario.word) || outcome.code == Code::Corrupt;
  EXPECT_TRUE(told);
  EXPECT_EQ(outcome.events.size(), 1u);
  if (outcome.events.size() != 1) return false;
  const Event& event = outcome.events[0];
  EXPECT_EQ(event.selected, scenario.word) << event.message;
  EXPECT_EQ(event.key, scenario.reach == Reach::Hints ? stage.request.hex() : stage.key.hex());
  EXPECT_EQ(event.origin, "remote");
  EXPECT_FALSE(event.message.empty());
  // Nobody fetches, and so nobody parses, what is not believed yet.
  const int may_read = scenario.reach == Reach::Content ? 1 : 0;
  EXPECT_EQ(outcome.contents_read, may_read);
  return !outcome.served && told && event.selected == scenario.word && outcome.contents_read == may_read;
}

TEST(HostileRemote, WithoutAFaultEverythingIsServed) {
  Stage stage;
  EXPECT_TRUE(ask(stage, Reach::Content).served);
  EXPECT_TRUE(ask(stage, Reach::Hints).served);
  stage.state(stage.live());
  EXPECT_TRUE(ask(stage, Reach::Content).served);
  EXPECT_EQ(ask(stage, Reach::Content).events.size(), 0u);
}

TEST(HostileRemote, BehindAGuardEveryScenarioIsAbsentAndTheServerIsLeftAloneInTheEnd) {
  EventLog log;
  const auto courier = std::make_shared<Courier>();
  const FleetPolicy policy;
  const auto guard = ServerGuard::make({.name = "a server",
                                        .probe = [](auto) { return Status(); },
                                        .courier = courier,
                                        .policy = policy,
                                        .observer = {}});
  unsigned rejected = 0;
  for (const Scenario& scenario : all_scenarios()) {
    if (rejected == policy.rejections_in_a_row) break;
    if (is_no_fault_of_servers(scenario.word)) continue;
    SCOPED_TRACE(scenario.name);
    EXPECT_TRUE(guard->closed()) << "given up after " << rejected;
    Stage stage;
    scenario.plant(stage);
    const auto remote =
        std::make_shared<RemoteStore>(RemoteStore::Parts{.depot = stage.depot,
                                                         .policy = std::make_shared<const TrustPolicy>(stage.policy),
                                                         .signer = nullptr,
                                                         .observer = log.observer()});
    GuardedStore store({.inner = remote, .guard = guard, .courier = courier, .policy = policy, .observer = {}});
    const auto hit = store.get(stage.key);
    EXPECT_TRUE(hit.ok() && !hit->has_value());
    EXPECT_EQ(log.count(Event::Kind::RemoteRefused), ++rejected);
    EXPECT_EQ(log.of(Event::Kind::RemoteRefused).back().selected, scenario.word);
  }
  EXPECT_FALSE(guard->closed());
}

TEST(HostileRemote, EveryScenarioIsRejectedWithItsOwnWordBeforeThePayloadIsParsed) {
  const std::vector<Scenario> all = all_scenarios();
  std::set<std::string> names;
  std::set<std::string> words;
  std::size_t rejected = 0;
  for (const Scenario& scenario : all) {
    rejected += rejected_as_told(scenario) ? 1 : 0;
    names.insert(scenario.name);
    words.insert(scenario.word);
  }
  EXPECT_EQ(names.size(), all.size());
  EXPECT_GE(all.size(), 30u);
  std::printf("figure: remote_hostile scenarios %zu rejected %zu words %zu\n", all.size(), rejected, words.size());
}

TEST(HostileRemote, NoBitOfAnActionMayBeAnother) {
  Stage stage;
  for (const SignedStatement& stated : {stage.ci(), stage.live()}) {
    const std::string honest = stage.result(stated.encode()).encode();
    // Of every byte another bit: all of them take a second, and fuzz_remote_entry goes on from there.
    for (std::size_t bit = 0; bit < honest.size() * 8; bit += 9) {
      std::string changed = honest;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      stage.action(changed);
      const Outcome outcome = ask(stage, Reach::Action);
      ASSERT_FALSE(outcome.served) << bit;
      ASSERT_EQ(outcome.events.size(), 1u) << bit;
    }
  }
}

TEST(HostileRemote, NoBitOfAContentMayBeAnother) {
  Stage stage;
  for (std::size_t bit = 0; bit < stage.entry.size() * 8; bit += 7) {
    std::string changed = stage.entry;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    stage.content(changed);
    const Outcome outcome = ask(stage, Reach::Content);
    ASSERT_FALSE(outcome.served) << bit;
    ASSERT_EQ(outcome.events.size(), 1u);
    ASSERT_EQ(outcome.events[0].selected, "content_differs") << bit;
  }
}

}  // namespace
}  // namespace kiln::test
