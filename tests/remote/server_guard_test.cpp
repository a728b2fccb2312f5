#include "remote/server_guard.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "base/error.hpp"
#include "store/allowance.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/own_process.hpp"
#include "support/stepped_clock.hpp"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using test::eventually;

// Of the budget, for noticing that the rest is over.
constexpr milliseconds kKeptBack(5);

class ServerGuardTest : public testing::Test {
 protected:
  ServerGuardTest() {
    ServerGuard::Parts parts;
    parts.name = "a server";
    parts.probe = [this](nanoseconds limit) -> Status {
      EXPECT_EQ(limit, policy_.budget);
      prober_ = std::this_thread::get_id();
      ++probes_;
      if (answers_) return {};
      return failure(Code::Unavailable, "still gone");
    };
    parts.courier = courier_;
    parts.policy = policy_;
    parts.observer = log_.observer();
    parts.clock = &clock_;
    guard_ = ServerGuard::make(std::move(parts));
  }
  ~ServerGuardTest() override { courier_->stop(); }

  void fail(Code code) { ServerGuard::Question(*guard_).failed(failure(code, "no answer")); }
  // To the next probe, and until it has been made.
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
  std::atomic<int> probes_{0};
  std::thread::id prober_;
  std::shared_ptr<Courier> courier_ = std::make_shared<Courier>(policy_, clock_);
  std::shared_ptr<ServerGuard> guard_;
};

TEST_F(ServerGuardTest, AServerMayTakeTheBudgetWhereNobodySaysHowLong) {
  EXPECT_EQ(guard_->allowed(), policy_.budget - kKeptBack);
}

TEST_F(ServerGuardTest, AServerMayTakeWhatIsLeftOfTheAllowance) {
  Allowance allowance(milliseconds(70));
  EXPECT_EQ(guard_->allowed(), milliseconds(70) - kKeptBack);
  {
    const ServerGuard::Question question(*guard_);
    clock_.advance(milliseconds(30));
  }
  EXPECT_EQ(guard_->allowed(), milliseconds(40) - kKeptBack);
  {
    const ServerGuard::Question question(*guard_);
    clock_.advance(milliseconds(500));
  }
  EXPECT_EQ(guard_->allowed(), nanoseconds(0));
}

TEST_F(ServerGuardTest, AnAllowanceForLongWorkIsNotBoundByTheBudget) {
  const Allowance allowance(seconds(30));
  EXPECT_EQ(guard_->allowed(), seconds(30) - kKeptBack);
}

TEST_F(ServerGuardTest, WithNextToNothingLeftNoServerIsAsked) {
  const Allowance allowance(kKeptBack);
  EXPECT_EQ(guard_->allowed(), nanoseconds(0));
  EXPECT_TRUE(guard_->closed());
}

TEST_F(ServerGuardTest, AServerThatFailedIsNotAskedAndThatIsToldOnce) {
  fail(Code::TimedOut);
  fail(Code::TimedOut);
  EXPECT_FALSE(guard_->closed());
  EXPECT_EQ(guard_->allowed(), nanoseconds(0));
  const auto told = log_.of(Event::Kind::RemoteUnavailable);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].origin, "remote");
  EXPECT_EQ(told[0].message, "a server: no answer");
}

TEST_F(ServerGuardTest, WhoeverCannotBeAskedIsGivenUpAndWhoeverCannotAnswerThisIsNot) {
  for (const Code code : {Code::TimedOut, Code::Unavailable, Code::Io, Code::Refused}) {
    fail(code);
    EXPECT_FALSE(guard_->closed()) << to_string(code);
    answers_ = true;
    ASSERT_TRUE(probe_once());
    ASSERT_TRUE(eventually([&] { return guard_->closed(); }));
  }
  for (const Code code : {Code::InvalidArgument, Code::Unsupported, Code::Cancelled}) {
    for (unsigned i = 0; i <= policy_.rejections_in_a_row; ++i) fail(code);
    EXPECT_TRUE(guard_->closed()) << to_string(code);
  }
}

TEST_F(ServerGuardTest, GarbageInARowGivesItUp) {
  for (unsigned i = 1; i < policy_.rejections_in_a_row; ++i) fail(Code::Corrupt);
  EXPECT_TRUE(guard_->closed());
  ServerGuard::Question(*guard_).rejected();
  EXPECT_FALSE(guard_->closed());
  ASSERT_EQ(log_.count(Event::Kind::RemoteUnavailable), 1u);
  EXPECT_EQ(log_.of(Event::Kind::RemoteUnavailable)[0].message, "a server: 16 answers in a row had to be rejected");
}

TEST_F(ServerGuardTest, AQuestionWithoutAWordWasAnswered) {
  for (unsigned i = 1; i < policy_.rejections_in_a_row; ++i) fail(Code::Corrupt);
  { const ServerGuard::Question question(*guard_); }
  fail(Code::Corrupt);
  EXPECT_TRUE(guard_->closed());
}

TEST_F(ServerGuardTest, ItIsProbedInTheBackgroundUntilItAnswersAndThenAskedAgain) {
  EXPECT_TRUE(eventually([] { return test::threads_of_kiln() == 0; }));
  fail(Code::Unavailable);
  EXPECT_TRUE(eventually([] { return test::threads_of_kiln() == 1; }));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(probe_once());
  EXPECT_FALSE(guard_->closed());
  EXPECT_EQ(log_.count(Event::Kind::RemoteBack), 0u);
  answers_ = true;
  ASSERT_TRUE(probe_once());
  ASSERT_TRUE(eventually([&] { return guard_->closed(); }));
  courier_->stop();
  EXPECT_NE(prober_, std::this_thread::get_id());
  EXPECT_EQ(log_.count(Event::Kind::RemoteBack), 1u);
  EXPECT_EQ(log_.count(Event::Kind::RemoteUnavailable), 1u);
}

TEST_F(ServerGuardTest, NobodyProbesForAGuardThatIsGone) {
  fail(Code::Unavailable);
  guard_.reset();
  clock_.advance(seconds(60));
  bool behind = false;
  courier_->send_always([&] { behind = true; });
  ASSERT_TRUE(courier_->drain(seconds(20)));
  EXPECT_TRUE(behind);
  EXPECT_EQ(probes_, 0);
}

}  // namespace
}  // namespace kiln
