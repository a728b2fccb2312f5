// SPDX-License-Identifier: Apache-2.0
#include "remote/fleet_claims.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fakes/stepped_clock.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/fleet_claims_fixture.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"
#include "support/processes/processes.hpp"
#include "support/processes/scheduling_delay.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Outcome = Claims::Outcome;

RequestKey asked_for(int number) { return {sha256("asked for " + std::to_string(number))}; }

// A lease table with results chosen by the test, which counts its calls.
class ScriptedTable final : public LeaseTable {
 public:
  Result<bool> try_acquire(const RequestKey&, const std::string&, Time, const Deadline& deadline) override {
    return answer(takes, !held_by_another, deadline);
  }
  Result<bool> renew(const RequestKey&, const std::string&, Time, const Deadline& deadline) override {
    return answer(renewals, !lost, deadline);
  }
  Status release(const RequestKey&, const std::string&, const Deadline&) override {
    ++releases;
    return {};
  }
  Result<Time> remaining_ttl(const RequestKey&, const Deadline&) override {
    ++checks;
    std::this_thread::sleep_for(check_takes);
    return held_by_another ? Time(1s) : Time(0);
  }
  Result<bool> try_hedge(const RequestKey&, unsigned, Time, const Deadline&) override {
    ++draws;
    return hedges_left.load() > 0 && hedges_left-- > 0;
  }
  Status probe(const Deadline&) override { return {}; }
  std::string describe() const override { return "a table"; }

  std::atomic<int> takes{0}, renewals{0}, releases{0}, checks{0}, draws{0}, hedges_left{0};
  std::atomic<bool> held_by_another{false}, lost{false}, down{false};
  std::chrono::milliseconds check_takes{0};

 private:
  Result<bool> answer(std::atomic<int>& count, bool what, const Deadline&) const {
    ++count;
    if (down) return Error{Code::Unavailable, "it is down", {}};
    return what;
  }
};

struct Fixture {
  explicit Fixture(FleetPolicy policy = quick_fleet(60ms)) : params(fleet_parts(table, policy, log.emitter())) {}
  std::shared_ptr<ScriptedTable> table = std::make_shared<ScriptedTable>();
  EventLog log;
  FleetClaims::Params params;
};

TEST(FleetClaims, OneThreadRenewsAllAndEndsWithLast) {
  Fixture fixture;
  FleetClaims claims(fixture.params);
  EXPECT_EQ(threads_named("kiln-leases"), 0) << "no lease is held";
  std::vector<Claims::AcquireResult> held;
  for (int i = 0; i < 5; ++i) held.push_back(claims.acquire(asked_for(i), 0ms, {}));
  ASSERT_TRUE(eventually([&] { return fixture.table->renewals > 20; }));
  EXPECT_EQ(threads_named("kiln-leases"), 1);
  held.clear();
  EXPECT_EQ(fixture.table->releases, 5);
  EXPECT_TRUE(eventually([] { return threads_named("kiln-leases") == 0; }));
  const auto again = claims.acquire(asked_for(9), 0ms, {});
  const int before = fixture.table->renewals;
  EXPECT_TRUE(eventually([&] { return fixture.table->renewals > before; }))
      << "the second renewal thread does not renew";
  EXPECT_EQ(fixture.log.count(Event::Kind::LeaseLost), 0u);
}

TEST(FleetClaims, LostClaimIsReportedOnceAndNotRenewed) {
  Fixture fixture;
  FleetClaims claims(fixture.params);
  const auto mine = claims.acquire(asked_for(1), 0ms, {});
  fixture.table->lost = true;
  ASSERT_TRUE(eventually([&] { return fixture.log.count(Event::Kind::LeaseLost) == 1; }));
  const int renewals = fixture.table->renewals;
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(fixture.table->renewals, renewals);
  EXPECT_EQ(fixture.log.count(Event::Kind::LeaseLost), 1u);
}

TEST(FleetClaims, SurviveOutageShorterThanLease) {
  FleetPolicy policy = quick_fleet(1200ms);
  policy.initial_backoff = 10ms;
  Fixture fixture(policy);
  SteppedClock clock;
  fixture.params.clock = &clock;
  FleetClaims claims(fixture.params);
  const auto mine = claims.acquire(asked_for(1), 0ms, {});
  // Lets the time pass and waits until the lease was renewed, or the renewal failed, this often.
  const auto renewed_after = [&](std::chrono::milliseconds time, int renewals) {
    if (!clock.waiting(1)) return false;
    clock.advance(time);
    return eventually([&] { return fixture.table->renewals >= renewals; });
  };
  fixture.table->down = true;
  ASSERT_TRUE(renewed_after(400ms, 1));
  fixture.table->down = false;
  ASSERT_TRUE(eventually([&] { return fixture.log.count(Event::Kind::RemoteRecovered) == 1; }));
  ASSERT_TRUE(renewed_after(120ms, 2));
  ASSERT_TRUE(renewed_after(400ms, 3));
  ASSERT_TRUE(renewed_after(400ms, 4));
  EXPECT_EQ(fixture.log.count(Event::Kind::LeaseLost), 0u);
  fixture.table->down = true;
  EXPECT_TRUE(eventually([&] {
    clock.advance(1ms);
    return fixture.log.count(Event::Kind::LeaseLost) == 1;
  }));
}

TEST(FleetClaims, AreNotRenewedBeyondMaximumHoldTime) {
  Fixture fixture;
  fixture.params.max_hold = 150ms;
  FleetClaims claims(fixture.params);
  const auto mine = claims.acquire(asked_for(1), 0ms, {});
  ASSERT_TRUE(eventually([&] { return fixture.log.count(Event::Kind::LeaseLost) == 1; }));
  const int renewals = fixture.table->renewals;
  std::this_thread::sleep_for(80ms);
  EXPECT_EQ(fixture.table->renewals, renewals);
}

TEST(FleetClaims, AreRenewedUntilReleasedAfterUploads) {
  Fixture fixture;
  fixture.params.background_queue = std::make_shared<BackgroundQueue>(fixture.params.policy);
  FleetClaims claims(fixture.params);
  auto mine = claims.acquire(asked_for(1), 0ms, {});
  std::atomic<bool> uploading{true};
  ASSERT_TRUE(fixture.params.background_queue->try_enqueue(
      1, [&uploading] { EXPECT_TRUE(eventually([&] { return !uploading; })); }));
  mine.claim.reset();
  const int renewals = fixture.table->renewals;
  EXPECT_TRUE(eventually([&] { return fixture.table->renewals > renewals + 2; }));
  EXPECT_EQ(fixture.table->releases, 0);
  uploading = false;
  EXPECT_TRUE(eventually([&] { return fixture.table->releases == 1; }));
}

TEST(FleetClaims, AreReleasedEvenIfQueueDropsTasksOrStops) {
  FleetPolicy policy = quick_fleet(60ms);
  policy.drain_timeout = 10ms;
  Fixture fixture(policy);
  fixture.params.background_queue = std::make_shared<BackgroundQueue>(policy);
  FleetClaims claims(fixture.params);
  auto first = claims.acquire(asked_for(1), 0ms, {});
  auto second = claims.acquire(asked_for(2), 0ms, {});
  ASSERT_TRUE(fixture.params.background_queue->try_enqueue(1, [] { std::this_thread::sleep_for(200ms); }));
  first.claim.reset();
  fixture.params.background_queue->stop();
  EXPECT_EQ(fixture.table->releases, 1);
  second.claim.reset();
  EXPECT_EQ(fixture.table->releases, 2);
}

TEST(FleetClaims, HostThatCannotPublishOnlyWaits) {
  Fixture fixture;
  fixture.params.can_publish = false;
  FleetClaims claims(fixture.params);
  auto answer = claims.acquire(asked_for(1), 0ms, {});
  EXPECT_EQ(answer.outcome, Outcome::Acquired);
  answer.claim.reset();
  fixture.table->held_by_another = true;
  EXPECT_EQ(claims.acquire(asked_for(1), 0ms, {}).outcome, Outcome::TimedOut);
  std::thread later([&] {
    EXPECT_TRUE(eventually([&] { return fixture.table->checks > 3; }));
    fixture.table->held_by_another = false;
  });
  EXPECT_EQ(claims.acquire(asked_for(1), 20s, {}).outcome, Outcome::ReleasedByOther);
  later.join();
  EXPECT_EQ(fixture.table->takes + fixture.table->releases + fixture.table->renewals + fixture.table->draws, 0);
}

TEST(FleetClaims, ReportOutcomeOfWait) {
  FleetPolicy policy = quick_fleet();
  policy.max_hedges = 1;
  policy.hedge_after_fraction = 0.3;
  Fixture fixture(policy);
  const ManualClock clock;  // waits return immediately
  fixture.params.clock = &clock;
  fixture.table->held_by_another = true;
  fixture.table->hedges_left = 1;
  FleetClaims claims(fixture.params);
  auto hedge = claims.acquire(asked_for(1), 20s, {});
  ASSERT_EQ(hedge.outcome, Outcome::Acquired);
  hedge.claim.reset();
  EXPECT_EQ(fixture.table->releases, 0) << "a hedge holds no lease";
  EXPECT_EQ(fixture.log.count(Event::Kind::Hedged), 1u);
  EXPECT_EQ(claims.acquire(asked_for(1), 20s, {}).outcome, Outcome::TimedOut);
  EXPECT_EQ(fixture.table->draws, 2);
  EXPECT_EQ(claims.acquire(asked_for(1), 0ms, {}).outcome, Outcome::TimedOut);
  std::vector<std::string> ends;
  for (const Event& event : fixture.log.of(Event::Kind::LeaseWaited)) {
    ends.push_back(event.selected);
    EXPECT_GT(event.ms, 1) << event.selected;
  }
  EXPECT_EQ(ends, (std::vector<std::string>{"hedged", "timed_out"})) << "no event without a wait";
}

TEST(FleetClaims, FailedTableIsUnavailableAndNotQueriedAgain) {
  FleetPolicy policy = quick_fleet();
  policy.initial_backoff = 10s;
  Fixture fixture(policy);
  fixture.table->down = true;
  FleetClaims claims(fixture.params);
  EXPECT_EQ(claims.acquire(asked_for(1), 1s, {}).outcome, Outcome::Unavailable);
  for (int i = 0; i < 100; ++i) {
    const auto answer = claims.acquire(asked_for(1), 1s, {});
    EXPECT_EQ(answer.outcome, Outcome::Unavailable);
    EXPECT_FALSE(answer.reason.empty());
  }
  EXPECT_EQ(fixture.table->takes, 1);
  EXPECT_EQ(fixture.log.count(Event::Kind::RemoteUnavailable), 1u);
}

TEST(FleetClaims, WithoutTimeSendNoRequestsButStillRelease) {
  Fixture fixture;
  FleetClaims claims(fixture.params);
  auto mine = claims.acquire(asked_for(1), 0ms, {});
  ServerTimeBudget none(0ns);
  EXPECT_EQ(claims.acquire(asked_for(2), 1s, {.server_budget = &none}).outcome, Outcome::Unavailable);
  EXPECT_EQ(fixture.table->takes, 1);
  mine.claim.reset();
  EXPECT_EQ(fixture.table->releases, 1);
}

TEST(FleetClaims, PollingDoesNotUseCallersBudget) {
  FleetPolicy policy = quick_fleet();
  policy.max_poll_interval = policy.initial_poll_interval = 1ms;
  Fixture fixture(policy);
  fixture.table->held_by_another = true;
  fixture.table->check_takes = 200ms;
  FleetClaims claims(fixture.params);
  const SchedulingDelayMonitor delay_monitor;
  ServerTimeBudget budget(20s);
  // Until enough polls have run, which takes long on a busy machine.
  std::stop_source stop;
  std::thread watcher([&] {
    EXPECT_TRUE(eventually([&] { return fixture.table->checks >= 5; }, kHangTimeout));
    stop.request_stop();
  });
  EXPECT_EQ(claims.acquire(asked_for(1), kHangTimeout, {.stop = stop.get_token(), .server_budget = &budget}).outcome,
            Outcome::TimedOut);
  watcher.join();
  EXPECT_EQ(fixture.table->takes, 1);
  EXPECT_LT(20s - budget.remaining(), 600ms + delay_monitor.lost()) << "of " << fixture.table->checks << " looks";
}

TEST(FleetClaims, DoNotWaitWhileStoreIsUnavailable) {
  Fixture fixture;
  fixture.table->held_by_another = true;
  const std::shared_ptr<ServerGuard> store = fleet_parts(std::make_shared<ScriptedTable>()).guard;
  fixture.params.store = store;
  FleetClaims claims(fixture.params);
  ServerGuard::Call(*store, nullptr, std::chrono::milliseconds(95)).failed({Code::Unavailable, "it is down", {}});
  EXPECT_EQ(claims.acquire(asked_for(1), 10s, {}).outcome, Outcome::Unavailable);
  EXPECT_EQ(fixture.table->takes, 0);
}

}  // namespace
}  // namespace kiln::test
