// SPDX-License-Identifier: Apache-2.0
#include "remote/lease_waiter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kiln::test {
namespace {

using Step = LeaseWaiter::Step;
using Time = std::chrono::nanoseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kStart = std::chrono::hours(1);

// Runs the steps of a waiter for which the lease is always held and no hedge is left.
struct Walk {
  std::vector<Time> checks;
  std::vector<Time> draws;
  Time end{};
  Step last = Step::Acquire;
};
Walk walk(LeaseWaiter& wait, Time now = kStart) {
  Walk walked;
  for (int steps = 0; steps < 100'000; ++steps) {
    const LeaseWaiter::Next next = wait.next(now);
    switch (next.step) {
      case Step::Acquire: wait.on_acquire(false, now); break;
      case Step::Check:
        walked.checks.push_back(now - kStart);
        wait.on_check(true, now);
        break;
      case Step::TryHedge:
        walked.draws.push_back(now - kStart);
        wait.on_hedge(false, now);
        break;
      case Step::Sleep:
        EXPECT_GT(next.until, now);
        now = next.until;
        break;
      default:
        walked.end = now - kStart;
        walked.last = next.step;
        return walked;
    }
  }
  ADD_FAILURE() << "the wait does not end";
  return walked;
}

FleetPolicy without_jitter() {
  FleetPolicy policy;
  policy.jitter = 0;
  return policy;
}

TEST(LeaseWaiter, CompilesImmediatelyIfLeaseIsFree) {
  Jitter jitter(1);
  LeaseWaiter wait({}, seconds(10), kStart, jitter);
  ASSERT_EQ(wait.next(kStart).step, Step::Acquire);
  wait.on_acquire(true, kStart);
  EXPECT_EQ(wait.next(kStart).step, Step::Compile);
}

TEST(LeaseWaiter, WithoutWaitTimeQueriesOnceAndTimesOut) {
  for (const Time none : {Time(0), Time(-5)}) {
    Jitter jitter(1);
    LeaseWaiter wait({}, none, kStart, jitter);
    ASSERT_EQ(wait.next(kStart).step, Step::Acquire);
    wait.on_acquire(false, kStart);
    EXPECT_EQ(wait.next(kStart).step, Step::TimedOut);
  }
}

TEST(LeaseWaiter, FinishesWhenHolderReleases) {
  Jitter jitter(1);
  LeaseWaiter wait({}, seconds(10), kStart, jitter);
  wait.on_acquire(false, kStart);
  const LeaseWaiter::Next interval = wait.next(kStart);
  ASSERT_EQ(interval.step, Step::Sleep);
  ASSERT_EQ(wait.next(interval.until).step, Step::Check);
  wait.on_check(false, interval.until);
  EXPECT_EQ(wait.next(interval.until).step, Step::ReleasedByOther);
}

TEST(LeaseWaiter, PollIntervalGrowsWithWaitedTimeUpToMaximum) {
  FleetPolicy policy = without_jitter();
  policy.hedge_after_fraction = 1;
  Jitter jitter(1);
  LeaseWaiter wait(policy, seconds(60), kStart, jitter);
  const Walk walked = walk(wait);
  ASSERT_GT(walked.checks.size(), 30u);
  EXPECT_EQ(walked.checks[0], policy.initial_poll_interval);
  EXPECT_EQ(walked.checks[1], 2 * policy.initial_poll_interval);
  for (std::size_t i = 1; i < walked.checks.size(); ++i) {
    const Time quarter =
        std::clamp<Time>(walked.checks[i - 1] / 4, policy.initial_poll_interval, policy.max_poll_interval);
    EXPECT_EQ(walked.checks[i] - walked.checks[i - 1], quarter) << i;
  }
  EXPECT_LT(walked.checks.size(), 60u);
  EXPECT_EQ(walked.last, Step::TimedOut);
  EXPECT_EQ(walked.end, seconds(60));
}

TEST(LeaseWaiter, NeverPollsAtOrAfterTimeout) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Jitter jitter(seed);
    const Time maximum = milliseconds(20 + 37 * seed);
    LeaseWaiter wait({}, maximum, kStart, jitter);
    const Walk walked = walk(wait);
    EXPECT_EQ(walked.last, Step::TimedOut);
    EXPECT_EQ(walked.end, maximum);
    EXPECT_TRUE(walked.checks.empty() || walked.checks.back() < maximum);
  }
}

TEST(LeaseWaiter, TriesHedgeOnceAfterPollAndWithinJitter) {
  const FleetPolicy policy;
  Time first = seconds(10);
  Time last{};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Jitter jitter(seed);
    LeaseWaiter wait(policy, seconds(10), kStart, jitter);
    const Walk walked = walk(wait);
    ASSERT_EQ(walked.draws.size(), 1u) << seed;
    EXPECT_NE(std::find(walked.checks.begin(), walked.checks.end(), walked.draws[0]), walked.checks.end());
    EXPECT_GE(walked.draws[0], milliseconds(8000) * 3 / 4);
    EXPECT_LE(walked.draws[0], milliseconds(8000) * 5 / 4);
    first = std::min(first, walked.draws[0]);
    last = std::max(last, walked.draws[0]);
  }
  EXPECT_GT(last - first, seconds(3)) << "hosts that started together try their hedges together";
}

TEST(LeaseWaiter, TriesNoHedgeIfHedgesAreDisabled) {
  FleetPolicy policy;
  policy.max_hedges = 0;
  Jitter jitter(1);
  LeaseWaiter wait(policy, seconds(10), kStart, jitter);
  EXPECT_TRUE(walk(wait).draws.empty());
}

TEST(LeaseWaiter, CompilesInAdditionToHolderWithHedge) {
  Jitter jitter(1);
  LeaseWaiter wait(without_jitter(), seconds(10), kStart, jitter);
  wait.on_acquire(false, kStart);
  const Time at = kStart + seconds(8);
  ASSERT_EQ(wait.next(at).step, Step::Check);
  wait.on_check(true, at);
  ASSERT_EQ(wait.next(at).step, Step::TryHedge);
  wait.on_hedge(true, at);
  EXPECT_EQ(wait.next(at).step, Step::Hedge);
}

TEST(LeaseWaiter, TriesNoHedgeIfHolderIsDone) {
  Jitter jitter(1);
  LeaseWaiter wait(without_jitter(), seconds(10), kStart, jitter);
  wait.on_acquire(false, kStart);
  const Time at = kStart + seconds(8);
  ASSERT_EQ(wait.next(at).step, Step::Check);
  wait.on_check(false, at);
  EXPECT_EQ(wait.next(at).step, Step::ReleasedByOther);
}

TEST(LeaseWaiter, HostThatCannotPublishOnlyPolls) {
  Jitter jitter(1);
  LeaseWaiter free({}, seconds(10), kStart, jitter, false);
  ASSERT_EQ(free.next(kStart).step, Step::Check);
  free.on_check(false, kStart);
  EXPECT_EQ(free.next(kStart).step, Step::Compile);

  LeaseWaiter held({}, seconds(10), kStart, jitter, false);
  const Walk walked = walk(held);
  EXPECT_TRUE(walked.draws.empty());
  EXPECT_EQ(walked.last, Step::TimedOut);

  LeaseWaiter done({}, seconds(10), kStart, jitter, false);
  done.on_check(true, kStart);
  const Time later = kStart + seconds(1);
  ASSERT_EQ(done.next(later).step, Step::Check);
  done.on_check(false, later);
  EXPECT_EQ(done.next(later).step, Step::ReleasedByOther);
}

TEST(LeaseWaiter, SpreadsFirstPolls) {
  const FleetPolicy policy;
  Jitter jitter(7);
  std::vector<Time> first;
  for (int host = 0; host < 1000; ++host) {
    LeaseWaiter wait(policy, seconds(10), kStart, jitter);
    wait.on_acquire(false, kStart);
    first.push_back(wait.next(kStart).until - kStart);
  }
  const auto [minimum, maximum] = std::minmax_element(first.begin(), first.end());
  EXPECT_GE(*minimum, policy.initial_poll_interval * 3 / 4);
  EXPECT_LE(*maximum, policy.initial_poll_interval * 5 / 4);
  EXPECT_GT(*maximum - *minimum, policy.initial_poll_interval / 3);
}

TEST(LeaseWaiter, PollsSoonAfterLeaseExpires) {
  const FleetPolicy policy;
  Time first = seconds(10);
  Time last{};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Jitter jitter(seed);
    LeaseWaiter wait(policy, seconds(60), kStart, jitter);
    wait.on_acquire(false, kStart);
    const Time now = kStart + seconds(20);  // a sleep would now take two seconds
    ASSERT_EQ(wait.next(now).step, Step::Check);
    wait.on_check(true, now, seconds(1));
    const LeaseWaiter::Next interval = wait.next(now);
    ASSERT_EQ(interval.step, Step::Sleep);
    first = std::min(first, interval.until - now);
    last = std::max(last, interval.until - now);
  }
  EXPECT_GE(first, seconds(1));
  EXPECT_LT(last, seconds(2));
  EXPECT_GT(last - first, milliseconds(600)) << "all hosts poll at once";
}

TEST(LeaseWaiter, RetriesAFailedPollUntilTheLeaseCanHaveExpired) {
  const FleetPolicy policy;
  Jitter jitter(1);
  LeaseWaiter wait(policy, seconds(60), kStart, jitter);
  EXPECT_FALSE(wait.on_failure(kStart));  // no answer yet: no host is known to compile
  wait.on_acquire(false, kStart);
  const Time now = kStart + seconds(1);
  ASSERT_EQ(wait.next(now).step, Step::Check);
  EXPECT_TRUE(wait.on_failure(now));
  EXPECT_EQ(wait.next(now).step, Step::Sleep);
  EXPECT_TRUE(wait.on_failure(kStart + policy.lease_ttl - milliseconds(1)));
  EXPECT_FALSE(wait.on_failure(kStart + policy.lease_ttl));
}

TEST(LeaseWaiter, AnswerAfterAFailedPollStartsTheTimeAgain) {
  const FleetPolicy policy;
  Jitter jitter(1);
  LeaseWaiter wait(policy, seconds(60), kStart, jitter);
  wait.on_acquire(false, kStart);
  ASSERT_TRUE(wait.on_failure(kStart + seconds(1)));
  const Time answered = kStart + seconds(4);
  ASSERT_EQ(wait.next(answered).step, Step::Check);
  wait.on_check(true, answered);
  EXPECT_TRUE(wait.on_failure(answered + policy.lease_ttl - milliseconds(1)));
  EXPECT_FALSE(wait.on_failure(answered + policy.lease_ttl));
}

TEST(LeaseWaiter, SlowStoreLimitsTheWaitToOneLease) {
  const FleetPolicy policy;
  Jitter jitter(1);
  LeaseWaiter wait(policy, seconds(60), kStart, jitter);
  wait.on_slow_store();
  const Walk walked = walk(wait);
  EXPECT_EQ(walked.last, Step::TimedOut);
  EXPECT_GE(walked.end, policy.lease_ttl);
  EXPECT_LE(walked.end, policy.lease_ttl + policy.max_poll_interval);

  LeaseWaiter shorter(policy, seconds(1), kStart, jitter);
  shorter.on_slow_store();
  EXPECT_EQ(walk(shorter).end, seconds(1));
}

TEST(LeaseWaiter, AcceptsMaximumDuration) {
  Jitter jitter(1);
  LeaseWaiter wait({}, Time::max(), kStart, jitter);
  wait.on_acquire(false, kStart);
  EXPECT_EQ(wait.next(kStart + std::chrono::hours(1000)).step, Step::Check);
}

}  // namespace
}  // namespace kiln::test
