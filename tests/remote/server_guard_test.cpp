// SPDX-License-Identifier: Apache-2.0
#include "remote/server_guard.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "base/error.hpp"
#include "support/fakes/stepped_clock.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/process_info.hpp"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using test::eventually;

// The part of the budget that is reserved for detecting a timeout.
constexpr milliseconds kKeptBack(5);

class ServerGuardTest : public testing::Test {
 protected:
  explicit ServerGuardTest(const FleetPolicy& policy = {}) : policy_(policy) {
    ServerGuard::Params params;
    params.name = "a server";
    params.probe = [this](const Deadline& deadline) -> Status {
      EXPECT_LE(deadline.remaining(), policy_.probe_timeout());
      prober_ = std::this_thread::get_id();
      ++probes_;
      InterruptCheck* const interrupt = deadline.interrupt();
      EXPECT_TRUE(eventually([&] { return gate_.load() || (interrupt != nullptr && interrupt->poll()); }));
      if (answers_) return {};
      return make_error(Code::Unavailable, "still down");
    };
    params.background_queue = background_queue_;
    params.policy = policy_;
    params.emitter = log_.emitter();
    params.clock = &clock_;
    guard_ = ServerGuard::make(std::move(params));
  }
  ~ServerGuardTest() override { background_queue_->stop(); }

  void fail(Code code, nanoseconds timeout = milliseconds(95)) {
    ServerGuard::Call(*guard_, nullptr, timeout).failed(make_error(code, "no answer"));
  }
  // Advances the clock to the next probe and waits until it has run.
  bool probe_once() {
    const int before = probes_;
    return eventually([&] {
      clock_.advance(milliseconds(100));
      return probes_ > before;
    });
  }

  const FleetPolicy policy_;
  test::SteppedClock clock_;
  test::EventLog log_;
  std::atomic<bool> answers_{false};
  std::atomic<bool> gate_{true};  // a probe waits until it is true
  std::atomic<int> probes_{0};
  std::thread::id prober_;
  std::shared_ptr<BackgroundQueue> background_queue_ = std::make_shared<BackgroundQueue>(policy_, clock_);
  std::shared_ptr<ServerGuard> guard_;
};

TEST_F(ServerGuardTest, QueryTimeoutAppliesWithoutAllowance) {
  EXPECT_EQ(guard_->time_budget(nullptr), policy_.query_timeout - kKeptBack);
}

TEST_F(ServerGuardTest, RemainingAllowanceApplies) {
  ServerTimeBudget budget(milliseconds(70));
  EXPECT_EQ(guard_->time_budget(&budget), milliseconds(70) - kKeptBack);
  {
    const ServerGuard::Call question(*guard_, &budget, milliseconds(95));
    clock_.advance(milliseconds(30));
  }
  EXPECT_EQ(guard_->time_budget(&budget), milliseconds(40) - kKeptBack);
  {
    const ServerGuard::Call question(*guard_, &budget, milliseconds(95));
    clock_.advance(milliseconds(500));
  }
  EXPECT_EQ(guard_->time_budget(&budget), nanoseconds(0));
}

TEST_F(ServerGuardTest, LongAllowanceIsNotLimitedByBudget) {
  const ServerTimeBudget budget(seconds(30));
  EXPECT_EQ(guard_->time_budget(&budget), seconds(30) - kKeptBack);
}

TEST_F(ServerGuardTest, NoRequestIfAlmostNoTimeIsLeft) {
  const ServerTimeBudget budget(kKeptBack);
  EXPECT_EQ(guard_->time_budget(&budget), nanoseconds(0));
  EXPECT_TRUE(guard_->is_available());
}

TEST_F(ServerGuardTest, BackgroundRequestHasQueryTimeoutUntilACallerWaits) {
  Urgency urgent(false);
  ServerTimeBudget budget(seconds(8), urgent, milliseconds(100));
  EXPECT_EQ(guard_->time_budget(&budget), policy_.query_timeout - kKeptBack);
  budget.charge(seconds(8) - milliseconds(300));
  EXPECT_EQ(guard_->time_budget(&budget), milliseconds(300) - kKeptBack);
  urgent.raise();
  EXPECT_EQ(guard_->time_budget(&budget), milliseconds(100) - kKeptBack);
  budget.charge(milliseconds(40));
  EXPECT_EQ(guard_->time_budget(&budget), milliseconds(60) - kKeptBack);
}

TEST_F(ServerGuardTest, OnlyBackgroundRequestsUseASlowServer) {
  const ServerTimeBudget waited(milliseconds(100));
  fail(Code::TimedOut);
  EXPECT_FALSE(guard_->accepts(&waited));
  EXPECT_EQ(guard_->time_budget(&waited), nanoseconds(0));
  EXPECT_EQ(guard_->time_budget(nullptr), policy_.slow_query_timeout - kKeptBack);
  EXPECT_FALSE(guard_->is_available());  // no upload before an answer
  ASSERT_EQ(log_.count(Event::Kind::RemoteUnavailable), 1u);
  EXPECT_EQ(log_.of(Event::Kind::RemoteUnavailable)[0].message,
            "a server: no answer; only background requests use it until it is fast again");
  {
    const ServerGuard::Call question(*guard_, nullptr, seconds(2));
    clock_.advance(milliseconds(300));
  }
  EXPECT_TRUE(guard_->is_available());
  EXPECT_FALSE(guard_->accepts(&waited));  // still too slow for a caller
  { const ServerGuard::Call question(*guard_, nullptr, seconds(2)); }
  EXPECT_TRUE(guard_->accepts(&waited));
  EXPECT_EQ(log_.count(Event::Kind::RemoteRecovered), 1u);
}

TEST_F(ServerGuardTest, FailedServerIsNotUsedAndReportedOnce) {
  fail(Code::Unavailable);
  fail(Code::TimedOut);
  EXPECT_FALSE(guard_->is_available());
  EXPECT_EQ(guard_->time_budget(nullptr), nanoseconds(0));
  const auto reported = log_.of(Event::Kind::RemoteUnavailable);
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].origin, "remote");
  EXPECT_EQ(reported[0].message, "a server: no answer");
}

TEST_F(ServerGuardTest, ServerErrorsOpenCircuitButCallerErrorsDoNot) {
  for (const Code code : {Code::TimedOut, Code::Unavailable, Code::Io, Code::Denied}) {
    fail(code);
    EXPECT_FALSE(guard_->is_available()) << to_string(code);
    answers_ = true;
    ASSERT_TRUE(probe_once());
    ASSERT_TRUE(eventually([&] { return guard_->is_available(); }));
  }
  for (const Code code : {Code::InvalidArgument, Code::Unsupported, Code::Cancelled}) {
    for (unsigned i = 0; i <= policy_.max_consecutive_rejections; ++i) fail(code);
    EXPECT_TRUE(guard_->is_available()) << to_string(code);
  }
}

TEST_F(ServerGuardTest, ConsecutiveRejectionsOpenCircuit) {
  for (unsigned i = 1; i < policy_.max_consecutive_rejections; ++i) fail(Code::Corrupt);
  EXPECT_TRUE(guard_->is_available());
  ServerGuard::Call(*guard_, nullptr, milliseconds(95)).rejected();
  EXPECT_FALSE(guard_->is_available());
  ASSERT_EQ(log_.count(Event::Kind::RemoteUnavailable), 1u);
  EXPECT_EQ(log_.of(Event::Kind::RemoteUnavailable)[0].message, "a server: 16 consecutive responses were rejected");
}

TEST_F(ServerGuardTest, CallWithoutErrorCountsAsSuccess) {
  for (unsigned i = 1; i < policy_.max_consecutive_rejections; ++i) fail(Code::Corrupt);
  { const ServerGuard::Call question(*guard_, nullptr, milliseconds(95)); }
  fail(Code::Corrupt);
  EXPECT_TRUE(guard_->is_available());
}

TEST_F(ServerGuardTest, ProbesInBackgroundUntilServerRecovers) {
  EXPECT_TRUE(eventually([] { return test::threads_of_kiln() == 0; }));
  fail(Code::Unavailable);
  EXPECT_TRUE(eventually([] { return test::threads_of_kiln() == 1; }));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(probe_once());
  EXPECT_FALSE(guard_->is_available());
  EXPECT_EQ(log_.count(Event::Kind::RemoteRecovered), 0u);
  answers_ = true;
  ASSERT_TRUE(probe_once());
  ASSERT_TRUE(eventually([&] { return guard_->is_available(); }));
  background_queue_->stop();
  EXPECT_NE(prober_, std::this_thread::get_id());
  EXPECT_EQ(log_.count(Event::Kind::RemoteRecovered), 1u);
  EXPECT_EQ(log_.count(Event::Kind::RemoteUnavailable), 1u);
}

TEST_F(ServerGuardTest, DestroyedGuardIsNotProbed) {
  fail(Code::Unavailable);
  guard_.reset();
  clock_.advance(seconds(60));
  bool behind = false;
  background_queue_->enqueue([&] { behind = true; });
  ASSERT_TRUE(background_queue_->drain(seconds(20)));
  EXPECT_TRUE(behind);
  EXPECT_EQ(probes_, 0);
}

// Probes that background requests start. The background queue does not probe in these tests.
class EarlyProbeTest : public ServerGuardTest {
 protected:
  EarlyProbeTest() : ServerGuardTest(policy_without_scheduled_probes()) {}
  static FleetPolicy policy_without_scheduled_probes() {
    FleetPolicy policy;
    policy.initial_backoff = std::chrono::hours(1);
    return policy;
  }

  ServerTimeBudget background_{seconds(8), Urgency(false), milliseconds(100)};
};

TEST_F(EarlyProbeTest, BackgroundRequestProbesAnOpenServerAtMostOncePerInterval) {
  guard_->recheck(&background_);  // closed
  fail(Code::Unavailable);
  guard_->recheck(&background_);
  clock_.advance(policy_.early_probe_interval - nanoseconds(1));
  guard_->recheck(&background_);
  EXPECT_EQ(probes_, 0);
  clock_.advance(nanoseconds(1));
  guard_->recheck(&background_);
  guard_->recheck(&background_);
  EXPECT_EQ(probes_, 1);
  EXPECT_EQ(prober_, std::this_thread::get_id());
  EXPECT_FALSE(guard_->accepts(&background_));
  answers_ = true;
  clock_.advance(policy_.early_probe_interval);
  guard_->recheck(&background_);
  EXPECT_EQ(probes_, 2);
  EXPECT_TRUE(guard_->accepts(&background_));
  EXPECT_EQ(guard_->recoveries(), 1u);
  EXPECT_EQ(log_.count(Event::Kind::RemoteRecovered), 1u);
}

TEST_F(EarlyProbeTest, OtherRequestsDoNotProbe) {
  fail(Code::Unavailable);
  clock_.advance(policy_.early_probe_interval);
  const ServerTimeBudget waited(milliseconds(100));
  guard_->recheck(&waited);
  guard_->recheck(nullptr);
  const ServerTimeBudget used_up(nanoseconds(0), Urgency(false), milliseconds(100));
  guard_->recheck(&used_up);
  Urgency urgent(false);
  const ServerTimeBudget raised(seconds(8), urgent, milliseconds(100));
  urgent.raise();
  guard_->recheck(&raised);
  EXPECT_EQ(probes_, 0);
}

TEST_F(EarlyProbeTest, SlowServerIsUsedWithoutAProbe) {
  fail(Code::TimedOut);
  clock_.advance(policy_.early_probe_interval);
  guard_->recheck(&background_);
  EXPECT_EQ(probes_, 0);
  EXPECT_TRUE(guard_->accepts(&background_));
  { const ServerGuard::Call question(*guard_, nullptr, seconds(2)); }
  EXPECT_EQ(guard_->recoveries(), 0u);  // it was not gone
}

TEST_F(EarlyProbeTest, OtherRequestsWaitForTheProbeInProgress) {
  fail(Code::Unavailable);
  clock_.advance(policy_.early_probe_interval);
  answers_ = true;
  gate_ = false;
  std::thread prober([&] { guard_->recheck(&background_); });
  ASSERT_TRUE(eventually([&] { return probes_ == 1; }));
  std::thread waiter([&] {
    const ServerTimeBudget own(seconds(8), Urgency(false), milliseconds(100));
    guard_->recheck(&own);
    EXPECT_TRUE(guard_->accepts(&own));
  });
  EXPECT_TRUE(eventually([&] { return clock_.waiting() >= 2; }));  // the waiter, and the background queue
  gate_ = true;
  prober.join();
  waiter.join();
  EXPECT_EQ(probes_, 1);
}

TEST_F(EarlyProbeTest, NoCallerWaitsForAProbe) {
  fail(Code::Unavailable);
  clock_.advance(policy_.early_probe_interval);
  gate_ = false;
  Urgency urgent(false);
  std::thread prober([&] {
    const ServerTimeBudget own(seconds(8), urgent, milliseconds(100));
    guard_->recheck(&own);
    EXPECT_FALSE(guard_->accepts(&own));
  });
  EXPECT_TRUE(eventually([&] { return probes_ == 1; }));
  urgent.raise();
  prober.join();  // although the gate is closed
}

TEST_F(EarlyProbeTest, WaitForTheProbeInProgressIsBounded) {
  fail(Code::Unavailable);
  clock_.advance(policy_.early_probe_interval);
  gate_ = false;
  std::thread prober([&] { guard_->recheck(&background_); });
  ASSERT_TRUE(eventually([&] { return probes_ == 1; }));
  std::thread waiter([&] {
    const ServerTimeBudget own(seconds(8), Urgency(false), milliseconds(100));
    guard_->recheck(&own);
    EXPECT_FALSE(guard_->accepts(&own));
  });
  EXPECT_TRUE(eventually([&] { return clock_.waiting() >= 2; }));
  clock_.advance(policy_.probe_timeout());
  waiter.join();
  gate_ = true;
  prober.join();
}

}  // namespace
}  // namespace kiln
