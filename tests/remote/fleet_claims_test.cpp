#include "remote/fleet_claims.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "store/allowance.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/fleet_party.hpp"
#include "support/manual_clock.hpp"
#include "support/pacer.hpp"
#include "support/patience.hpp"
#include "support/processes.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using Outcome = Claims::Outcome;

RequestKey asked_for(int number) { return {sha256("asked for " + std::to_string(number))}; }

// A table of which a test decides what it answers, and that counts what it is asked.
class ScriptedTable final : public LeaseTable {
 public:
  Result<bool> take(const RequestKey&, const std::string&, Time, Time limit) override {
    return answer(takes, !held_by_another, limit);
  }
  Result<bool> renew(const RequestKey&, const std::string&, Time, Time limit) override {
    return answer(renewals, !lost, limit);
  }
  Status release(const RequestKey&, const std::string&, Time) override {
    ++releases;
    return {};
  }
  Result<Time> held(const RequestKey&, Time) override {
    ++peeks;
    std::this_thread::sleep_for(peek_takes);
    return held_by_another ? Time(1s) : Time(0);
  }
  Result<bool> draw(const RequestKey&, unsigned, Time, Time) override {
    ++draws;
    return hedges_left.load() > 0 && hedges_left-- > 0;
  }
  Status probe(Time) override { return {}; }
  std::string describe() const override { return "a table"; }

  std::atomic<int> takes{0}, renewals{0}, releases{0}, peeks{0}, draws{0}, hedges_left{0};
  std::atomic<bool> held_by_another{false}, lost{false}, down{false};
  std::chrono::milliseconds peek_takes{0};

 private:
  Result<bool> answer(std::atomic<int>& count, bool what, Time) const {
    ++count;
    if (down) return Error{Code::Unavailable, "it is down", {}};
    return what;
  }
};

struct Rig {
  explicit Rig(FleetPolicy policy = quick_fleet(60ms)) : parts(fleet_parts(table, policy, log.observer())) {}
  std::shared_ptr<ScriptedTable> table = std::make_shared<ScriptedTable>();
  EventLog log;
  FleetClaims::Parts parts;
};

TEST(FleetClaims, AreRenewedByOneThreadForAllWhichEndsWithTheLast) {
  Rig rig;
  FleetClaims claims(rig.parts);
  EXPECT_EQ(threads_named("kiln-leases"), 0) << "nobody holds anything";
  std::vector<Claims::Answer> held;
  for (int i = 0; i < 5; ++i) held.push_back(claims.acquire(asked_for(i), 0ms));
  ASSERT_TRUE(eventually([&] { return rig.table->renewals > 20; }));
  EXPECT_EQ(threads_named("kiln-leases"), 1);
  held.clear();
  EXPECT_EQ(rig.table->releases, 5);
  EXPECT_TRUE(eventually([] { return threads_named("kiln-leases") == 0; }));
  const auto again = claims.acquire(asked_for(9), 0ms);
  const int before = rig.table->renewals;
  EXPECT_TRUE(eventually([&] { return rig.table->renewals > before; })) << "the second keeper does not renew";
  EXPECT_EQ(rig.log.count(Event::Kind::LeaseLost), 0u);
}

TEST(FleetClaims, ThatAreLostAreToldOnceAndNotRenewedAgain) {
  Rig rig;
  FleetClaims claims(rig.parts);
  const auto mine = claims.acquire(asked_for(1), 0ms);
  rig.table->lost = true;
  ASSERT_TRUE(eventually([&] { return rig.log.count(Event::Kind::LeaseLost) == 1; }));
  const int renewals = rig.table->renewals;
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(rig.table->renewals, renewals);
  EXPECT_EQ(rig.log.count(Event::Kind::LeaseLost), 1u);
}

TEST(FleetClaims, OutliveATableThatIsDownForLessThanALeaseAndNotOneThatIsDownForLonger) {
  FleetPolicy policy = quick_fleet(1200ms);  // half of it must be enough for a machine that has much else to do
  policy.open_first = 10ms;
  Rig rig(policy);
  FleetClaims claims(rig.parts);
  const auto mine = claims.acquire(asked_for(1), 0ms);
  rig.table->down = true;
  ASSERT_TRUE(eventually([&] { return rig.table->renewals > 0; }));
  rig.table->down = false;
  const int renewals = rig.table->renewals;
  ASSERT_TRUE(eventually([&] { return rig.table->renewals > renewals + 1; }));
  EXPECT_EQ(rig.log.count(Event::Kind::LeaseLost), 0u);
  rig.table->down = true;
  EXPECT_TRUE(eventually([&] { return rig.log.count(Event::Kind::LeaseLost) == 1; }));
}

TEST(FleetClaims, AreNotRenewedForLongerThanACompileMayTake) {
  Rig rig;
  rig.parts.most_held = 150ms;
  FleetClaims claims(rig.parts);
  const auto mine = claims.acquire(asked_for(1), 0ms);
  ASSERT_TRUE(eventually([&] { return rig.log.count(Event::Kind::LeaseLost) == 1; }));
  const int renewals = rig.table->renewals;
  std::this_thread::sleep_for(80ms);
  EXPECT_EQ(rig.table->renewals, renewals);
}

TEST(FleetClaims, AreLetGoBehindTheUploadsAndRenewedUntilThen) {
  Rig rig;
  rig.parts.courier = std::make_shared<Courier>(rig.parts.policy);
  FleetClaims claims(rig.parts);
  auto mine = claims.acquire(asked_for(1), 0ms);
  std::atomic<bool> uploading{true};
  ASSERT_TRUE(rig.parts.courier->send(1, [&uploading] { EXPECT_TRUE(eventually([&] { return !uploading; })); }));
  mine.claim.reset();
  const int renewals = rig.table->renewals;
  EXPECT_TRUE(eventually([&] { return rig.table->renewals > renewals + 2; }));
  EXPECT_EQ(rig.table->releases, 0);
  uploading = false;
  EXPECT_TRUE(eventually([&] { return rig.table->releases == 1; }));
}

TEST(FleetClaims, AreLetGoAlsoWhereTheCourierForgetsItsErrandsOrIsStopped) {
  FleetPolicy policy = quick_fleet(60ms);
  policy.drain_limit = 10ms;
  Rig rig(policy);
  rig.parts.courier = std::make_shared<Courier>(policy);
  FleetClaims claims(rig.parts);
  auto first = claims.acquire(asked_for(1), 0ms);
  auto second = claims.acquire(asked_for(2), 0ms);
  ASSERT_TRUE(rig.parts.courier->send(1, [] { std::this_thread::sleep_for(200ms); }));
  first.claim.reset();
  rig.parts.courier->stop();
  EXPECT_EQ(rig.table->releases, 1);
  second.claim.reset();
  EXPECT_EQ(rig.table->releases, 2);
}

TEST(FleetClaims, OfAHostThatMayHoldNoneTakeNothingAndWaitForOthers) {
  Rig rig;
  rig.parts.may_hold = false;
  FleetClaims claims(rig.parts);
  auto answer = claims.acquire(asked_for(1), 0ms);
  EXPECT_EQ(answer.outcome, Outcome::Mine);
  answer.claim.reset();
  rig.table->held_by_another = true;
  EXPECT_EQ(claims.acquire(asked_for(1), 0ms).outcome, Outcome::TimedOut);
  std::thread later([&] {
    EXPECT_TRUE(eventually([&] { return rig.table->peeks > 3; }));
    rig.table->held_by_another = false;
  });
  EXPECT_EQ(claims.acquire(asked_for(1), 20s).outcome, Outcome::Finished);
  later.join();
  EXPECT_EQ(rig.table->takes + rig.table->releases + rig.table->renewals + rig.table->draws, 0);
}

TEST(FleetClaims, TellHowAWaitEnded) {
  FleetPolicy policy = quick_fleet();
  policy.hedges = 1;
  policy.hedge_at = 0.3;
  Rig rig(policy);
  const ManualClock clock;  // who waits by it does not wait
  rig.parts.clock = &clock;
  rig.table->held_by_another = true;
  rig.table->hedges_left = 1;
  FleetClaims claims(rig.parts);
  auto hedge = claims.acquire(asked_for(1), 20s);
  ASSERT_EQ(hedge.outcome, Outcome::Mine);
  hedge.claim.reset();
  EXPECT_EQ(rig.table->releases, 0) << "a hedge holds nothing";
  EXPECT_EQ(rig.log.count(Event::Kind::Hedged), 1u);
  EXPECT_EQ(claims.acquire(asked_for(1), 20s).outcome, Outcome::TimedOut);
  EXPECT_EQ(rig.table->draws, 2);
  EXPECT_EQ(claims.acquire(asked_for(1), 0ms).outcome, Outcome::TimedOut);
  std::vector<std::string> ends;
  for (const Event& event : rig.log.of(Event::Kind::LeaseWaited)) {
    ends.push_back(event.selected);
    EXPECT_GT(event.ms, 1) << event.selected;
  }
  EXPECT_EQ(ends, (std::vector<std::string>{"hedged", "timed_out"})) << "who never waits did not wait";
}

TEST(FleetClaims, OfATableThatIsDownAreUnavailableAndNotAskedAgainAtOnce) {
  FleetPolicy policy = quick_fleet();
  policy.open_first = 10s;
  Rig rig(policy);
  rig.table->down = true;
  FleetClaims claims(rig.parts);
  EXPECT_EQ(claims.acquire(asked_for(1), 1s).outcome, Outcome::Unavailable);
  for (int i = 0; i < 100; ++i) {
    const auto answer = claims.acquire(asked_for(1), 1s);
    EXPECT_EQ(answer.outcome, Outcome::Unavailable);
    EXPECT_FALSE(answer.reason.empty());
  }
  EXPECT_EQ(rig.table->takes, 1);
  EXPECT_EQ(rig.log.count(Event::Kind::RemoteUnavailable), 1u);
}

TEST(FleetClaims, AskNothingWhereNoTimeIsLeftForServersAndLetGoNevertheless) {
  Rig rig;
  FleetClaims claims(rig.parts);
  auto mine = claims.acquire(asked_for(1), 0ms);
  const Allowance none(0ns);
  EXPECT_EQ(claims.acquire(asked_for(2), 1s).outcome, Outcome::Unavailable);
  EXPECT_EQ(rig.table->takes, 1);
  mine.claim.reset();
  EXPECT_EQ(rig.table->releases, 1);
}

TEST(FleetClaims, DoNotSpendTheAllowanceOnLookingWhileTheyWait) {
  FleetPolicy policy = quick_fleet();
  policy.poll_most = policy.poll_first = 1ms;
  Rig rig(policy);
  rig.table->held_by_another = true;
  rig.table->peek_takes = 10ms;
  FleetClaims claims(rig.parts);
  const Pacer pacer;
  Allowance allowance(2s);
  // Until it has looked often enough, which takes long on a machine with much to do.
  std::stop_source stop;
  std::thread watcher([&] {
    EXPECT_TRUE(eventually([&] { return rig.table->peeks >= 5; }, kPatience));
    stop.request_stop();
  });
  EXPECT_EQ(claims.acquire(asked_for(1), kPatience, stop.get_token()).outcome, Outcome::TimedOut);
  watcher.join();
  EXPECT_EQ(rig.table->takes, 1);
  EXPECT_LT(2s - allowance.left(), 40ms + pacer.lost()) << "of " << rig.table->peeks << " looks";
}

TEST(FleetClaims, WaitForNobodyWhileTheStoreInWhichHePublishesIsGivenUp) {
  Rig rig;
  rig.table->held_by_another = true;
  const std::shared_ptr<ServerGuard> store = fleet_parts(std::make_shared<ScriptedTable>()).guard;
  rig.parts.store = store;
  FleetClaims claims(rig.parts);
  ServerGuard::Question(*store).failed({Code::Unavailable, "it is down", {}});
  EXPECT_EQ(claims.acquire(asked_for(1), 10s).outcome, Outcome::Unavailable);
  EXPECT_EQ(rig.table->takes, 0);
}

}  // namespace
}  // namespace kiln::test
