#include "remote/lease_wait.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace kiln::test {
namespace {

using Step = LeaseWait::Step;
using Time = std::chrono::nanoseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Time kStart = std::chrono::hours(1);

// Goes the steps of a waiter who always hears that another holds the lease and that no hedge is left.
struct Walk {
  std::vector<Time> peeks;
  std::vector<Time> draws;
  Time end{};
  Step last = Step::Take;
};
Walk walk(LeaseWait& wait, Time now = kStart) {
  Walk walked;
  for (int steps = 0; steps < 100'000; ++steps) {
    const LeaseWait::Next next = wait.next(now);
    switch (next.step) {
      case Step::Take: wait.took(false, now); break;
      case Step::Peek:
        walked.peeks.push_back(now - kStart);
        wait.peeked(true, now);
        break;
      case Step::Draw:
        walked.draws.push_back(now - kStart);
        wait.drew(false, now);
        break;
      case Step::Nap:
        EXPECT_GT(next.until, now);
        now = next.until;
        break;
      default:
        walked.end = now - kStart;
        walked.last = next.step;
        return walked;
    }
  }
  ADD_FAILURE() << "the walk has no end";
  return walked;
}

FleetPolicy without_jitter() {
  FleetPolicy policy;
  policy.jitter = 0;
  return policy;
}

TEST(LeaseWait, CompilesAtOnceWhereNobodyHoldsTheLease) {
  Jitter jitter(1);
  LeaseWait wait({}, seconds(10), kStart, jitter);
  ASSERT_EQ(wait.next(kStart).step, Step::Take);
  wait.took(true, kStart);
  EXPECT_EQ(wait.next(kStart).step, Step::Compile);
}

TEST(LeaseWait, WithNoTimeToWaitAsksOnceAndGivesUp) {
  for (const Time none : {Time(0), Time(-5)}) {
    Jitter jitter(1);
    LeaseWait wait({}, none, kStart, jitter);
    ASSERT_EQ(wait.next(kStart).step, Step::Take);
    wait.took(false, kStart);
    EXPECT_EQ(wait.next(kStart).step, Step::GiveUp);
  }
}

TEST(LeaseWait, IsFinishedWhenTheHolderLetsGo) {
  Jitter jitter(1);
  LeaseWait wait({}, seconds(10), kStart, jitter);
  wait.took(false, kStart);
  const LeaseWait::Next nap = wait.next(kStart);
  ASSERT_EQ(nap.step, Step::Nap);
  ASSERT_EQ(wait.next(nap.until).step, Step::Peek);
  wait.peeked(false, nap.until);
  EXPECT_EQ(wait.next(nap.until).step, Step::Finished);
}

TEST(LeaseWait, PeeksSoonAtFirstThenAfterAQuarterOfWhatItHasWaitedAndAtMostSoOften) {
  FleetPolicy policy = without_jitter();
  policy.hedge_at = 1;
  Jitter jitter(1);
  LeaseWait wait(policy, seconds(60), kStart, jitter);
  const Walk walked = walk(wait);
  ASSERT_GT(walked.peeks.size(), 30u);
  EXPECT_EQ(walked.peeks[0], policy.poll_first);
  EXPECT_EQ(walked.peeks[1], 2 * policy.poll_first);
  for (std::size_t i = 1; i < walked.peeks.size(); ++i) {
    const Time quarter = std::clamp<Time>(walked.peeks[i - 1] / 4, policy.poll_first, policy.poll_most);
    EXPECT_EQ(walked.peeks[i] - walked.peeks[i - 1], quarter) << i;
  }
  EXPECT_LT(walked.peeks.size(), 60u);
  EXPECT_EQ(walked.last, Step::GiveUp);
  EXPECT_EQ(walked.end, seconds(60));
}

TEST(LeaseWait, NeverPeeksAtOrPastTheTimeWhenItGivesUp) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Jitter jitter(seed);
    const Time most = milliseconds(20 + 37 * seed);
    LeaseWait wait({}, most, kStart, jitter);
    const Walk walked = walk(wait);
    EXPECT_EQ(walked.last, Step::GiveUp);
    EXPECT_EQ(walked.end, most);
    EXPECT_TRUE(walked.peeks.empty() || walked.peeks.back() < most);
  }
}

TEST(LeaseWait, TriesForAHedgeOnceRightBehindAPeekAndWithinItsJitter) {
  const FleetPolicy policy;
  Time first = seconds(10);
  Time last{};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Jitter jitter(seed);
    LeaseWait wait(policy, seconds(10), kStart, jitter);
    const Walk walked = walk(wait);
    ASSERT_EQ(walked.draws.size(), 1u) << seed;
    EXPECT_NE(std::find(walked.peeks.begin(), walked.peeks.end(), walked.draws[0]), walked.peeks.end());
    EXPECT_GE(walked.draws[0], milliseconds(8000) * 3 / 4);
    EXPECT_LE(walked.draws[0], milliseconds(8000) * 5 / 4);
    first = std::min(first, walked.draws[0]);
    last = std::max(last, walked.draws[0]);
  }
  EXPECT_GT(last - first, seconds(3)) << "hosts that began together draw together";
}

TEST(LeaseWait, DrawsNoHedgeWhereThereAreNone) {
  FleetPolicy policy;
  policy.hedges = 0;
  Jitter jitter(1);
  LeaseWait wait(policy, seconds(10), kStart, jitter);
  EXPECT_TRUE(walk(wait).draws.empty());
}

TEST(LeaseWait, CompilesBesidesTheHolderWhereItDrewAHedge) {
  Jitter jitter(1);
  LeaseWait wait(without_jitter(), seconds(10), kStart, jitter);
  wait.took(false, kStart);
  const Time at = kStart + seconds(8);
  ASSERT_EQ(wait.next(at).step, Step::Peek);
  wait.peeked(true, at);
  ASSERT_EQ(wait.next(at).step, Step::Draw);
  wait.drew(true, at);
  EXPECT_EQ(wait.next(at).step, Step::Hedge);
}

TEST(LeaseWait, DrawsNoHedgeWhenTheHolderIsDoneByThen) {
  Jitter jitter(1);
  LeaseWait wait(without_jitter(), seconds(10), kStart, jitter);
  wait.took(false, kStart);
  const Time at = kStart + seconds(8);
  ASSERT_EQ(wait.next(at).step, Step::Peek);
  wait.peeked(false, at);
  EXPECT_EQ(wait.next(at).step, Step::Finished);
}

TEST(LeaseWait, OfThoseWhoCouldNotPublishLooksOnlyAndDrawsNoHedge) {
  Jitter jitter(1);
  LeaseWait free({}, seconds(10), kStart, jitter, false);
  ASSERT_EQ(free.next(kStart).step, Step::Peek);
  free.peeked(false, kStart);
  EXPECT_EQ(free.next(kStart).step, Step::Compile);

  LeaseWait held({}, seconds(10), kStart, jitter, false);
  const Walk walked = walk(held);
  EXPECT_TRUE(walked.draws.empty());
  EXPECT_EQ(walked.last, Step::GiveUp);

  LeaseWait done({}, seconds(10), kStart, jitter, false);
  done.peeked(true, kStart);
  const Time later = kStart + seconds(1);
  ASSERT_EQ(done.next(later).step, Step::Peek);
  done.peeked(false, later);
  EXPECT_EQ(done.next(later).step, Step::Finished);
}

TEST(LeaseWait, SpreadsTheFirstPeeksOfHostsThatBeganTogether) {
  const FleetPolicy policy;
  Jitter jitter(7);
  std::vector<Time> first;
  for (int host = 0; host < 1000; ++host) {
    LeaseWait wait(policy, seconds(10), kStart, jitter);
    wait.took(false, kStart);
    first.push_back(wait.next(kStart).until - kStart);
  }
  const auto [least, most] = std::minmax_element(first.begin(), first.end());
  EXPECT_GE(*least, policy.poll_first * 3 / 4);
  EXPECT_LE(*most, policy.poll_first * 5 / 4);
  EXPECT_GT(*most - *least, policy.poll_first / 3);
}

TEST(LeaseWait, LooksSoonAfterTheLeaseOfAHolderThatDoesNotRenewItLapses) {
  const FleetPolicy policy;
  Time first = seconds(10);
  Time last{};
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Jitter jitter(seed);
    LeaseWait wait(policy, seconds(60), kStart, jitter);
    wait.took(false, kStart);
    const Time now = kStart + seconds(20);  // a nap would last two seconds by now
    ASSERT_EQ(wait.next(now).step, Step::Peek);
    wait.peeked(true, now, seconds(1));
    const LeaseWait::Next nap = wait.next(now);
    ASSERT_EQ(nap.step, Step::Nap);
    first = std::min(first, nap.until - now);
    last = std::max(last, nap.until - now);
  }
  EXPECT_GE(first, seconds(1));
  EXPECT_LT(last, seconds(2));
  EXPECT_GT(last - first, milliseconds(600)) << "all look at once";
}

TEST(LeaseWait, WaitsAsLongAsTheLongestTimeThatCanBeSaid) {
  Jitter jitter(1);
  LeaseWait wait({}, Time::max(), kStart, jitter);
  wait.took(false, kStart);
  EXPECT_EQ(wait.next(kStart + std::chrono::hours(1000)).step, Step::Peek);
}

}  // namespace
}  // namespace kiln::test
