// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "hostile_scenarios.hpp"
#include "remote/guarded_store.hpp"
#include "support/fixtures/event_log.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;

// The result of a lookup as a host sees it.
struct Outcome {
  bool served = false;
  Code code = Code::Internal;
  std::vector<Event> events;
  int contents_read = 0;
};

Outcome ask(const Stage& stage, Reach reach) {
  EventLog log;
  RemoteStore store({.object_store = stage.object_store,
                     .policy = std::make_shared<const TrustPolicy>(stage.policy),
                     .signer = nullptr,
                     .emitter = log.emitter()});
  Outcome outcome;
  if (reach == Reach::Hints) {
    const auto dependency_sets = store.dependency_sets(stage.request, Store::kMaxDependencySets, {});
    outcome.served = dependency_sets && !dependency_sets->empty();
    if (!dependency_sets) outcome.code = dependency_sets.error().code;
  } else {
    const auto hit = store.get(stage.key, {});
    outcome.served = hit && hit->has_value();
    if (!hit) outcome.code = hit.error().code;
  }
  outcome.events = log.of(Event::Kind::RemoteRejected);
  outcome.contents_read = stage.object_store->reads(Bucket::Cas);
  return outcome;
}

// Rejections that are not the server's fault: it evicts content, and it serves hosts with other versions and policies.
bool is_no_fault_of_servers(const std::string& word) {
  const std::set<std::string> words = {
      "content_missing",       "newer_version",      "unknown_key",     "revoked_key",
      "namespace_not_allowed", "epoch_too_old",      "epoch_in_future", "live_namespace_not_trusted",
      "not_certified",         "certificate_expired"};
  return words.contains(word);
}

bool rejected_as_reported(const Scenario& scenario) {
  SCOPED_TRACE(scenario.name);
  Stage stage;
  scenario.plant(stage);
  const Outcome outcome = ask(stage, scenario.reach);
  EXPECT_FALSE(outcome.served);
  // The code by which a guard recognizes bad data from the server. Evicted content is not bad data.
  const bool reported = (outcome.code == Code::Corrupt) != is_no_fault_of_servers(scenario.word);
  EXPECT_TRUE(reported);
  EXPECT_EQ(outcome.events.size(), 1u);
  if (outcome.events.size() != 1) return false;
  const Event& event = outcome.events[0];
  EXPECT_EQ(event.selected, scenario.word) << event.message;
  EXPECT_EQ(event.key, scenario.reach == Reach::Hints ? stage.request.hex() : stage.key.hex());
  EXPECT_EQ(event.origin, "remote");
  EXPECT_FALSE(event.message.empty());
  // Content must not be fetched, and so not parsed, before it is trusted.
  const int may_read = scenario.reach == Reach::Content ? 1 : 0;
  EXPECT_EQ(outcome.contents_read, may_read);
  return !outcome.served && reported && event.selected == scenario.word && outcome.contents_read == may_read;
}

TEST(HostileRemote, ValidEntriesAreServed) {
  Stage stage;
  EXPECT_TRUE(ask(stage, Reach::Content).served);
  EXPECT_TRUE(ask(stage, Reach::Hints).served);
  stage.live_action(stage.result(stage.live().encode()).encode());
  EXPECT_TRUE(ask(stage, Reach::Content).served);
  EXPECT_EQ(ask(stage, Reach::Content).events.size(), 0u);
}

TEST(HostileRemote, GuardTurnsScenariosIntoMissesAndOpensCircuit) {
  EventLog log;
  const auto background_queue = std::make_shared<BackgroundQueue>();
  const FleetPolicy policy;
  const auto guard = ServerGuard::make({.name = "a server",
                                        .probe = [](auto) { return Status(); },
                                        .background_queue = background_queue,
                                        .policy = policy,
                                        .emitter = {}});
  unsigned rejected = 0;
  for (const Scenario& scenario : all_scenarios()) {
    if (rejected == policy.max_consecutive_rejections) break;
    if (is_no_fault_of_servers(scenario.word)) continue;
    SCOPED_TRACE(scenario.name);
    EXPECT_TRUE(guard->is_available()) << "circuit opened after " << rejected;
    Stage stage;
    scenario.plant(stage);
    const auto remote =
        std::make_shared<RemoteStore>(RemoteStore::Params{.object_store = stage.object_store,
                                                          .policy = std::make_shared<const TrustPolicy>(stage.policy),
                                                          .signer = nullptr,
                                                          .emitter = log.emitter()});
    GuardedStore store(
        {.inner = remote, .guard = guard, .background_queue = background_queue, .policy = policy, .emitter = {}});
    const auto hit = store.get(stage.key, {});
    EXPECT_TRUE(hit.has_value() && !hit->has_value());
    EXPECT_EQ(log.count(Event::Kind::RemoteRejected), ++rejected);
    EXPECT_EQ(log.of(Event::Kind::RemoteRejected).back().selected, scenario.word);
  }
  EXPECT_FALSE(guard->is_available());
}

TEST(HostileRemote, EveryScenarioIsRejectedWithItsReasonBeforeParsing) {
  const std::vector<Scenario> all = all_scenarios();
  std::set<std::string> names;
  std::set<std::string> words;
  std::size_t rejected = 0;
  for (const Scenario& scenario : all) {
    rejected += rejected_as_reported(scenario) ? 1 : 0;
    names.insert(scenario.name);
    words.insert(scenario.word);
  }
  EXPECT_EQ(names.size(), all.size());
  EXPECT_GE(all.size(), 30u);
  std::printf("figure: remote_hostile scenarios %zu rejected %zu words %zu\n", all.size(), rejected, words.size());
}

TEST(HostileRemote, BitFlipsInActionAreRejected) {
  Stage stage;
  for (const SignedStatement& stated : {stage.ci(), stage.live()}) {
    const std::string honest = stage.result(stated.encode()).encode();
    // One bit of every byte: all bits would take a second, and fuzz_remote_entry covers them.
    for (std::size_t bit = 0; bit < honest.size() * 8; bit += 9) {
      std::string changed = honest;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
      stated.certificate ? stage.live_action(changed) : stage.action(changed);
      const Outcome outcome = ask(stage, Reach::Action);
      ASSERT_FALSE(outcome.served) << bit;
      ASSERT_EQ(outcome.events.size(), 1u) << bit;
    }
  }
}

TEST(HostileRemote, BitFlipsInContentAreRejected) {
  Stage stage;
  for (std::size_t bit = 0; bit < stage.entry.size() * 8; bit += 7) {
    std::string changed = stage.entry;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    stage.content(changed);
    const Outcome outcome = ask(stage, Reach::Content);
    ASSERT_FALSE(outcome.served) << bit;
    ASSERT_EQ(outcome.events.size(), 1u);
    ASSERT_EQ(outcome.events[0].selected, "content_mismatch") << bit;
  }
}

}  // namespace
}  // namespace kiln::test
