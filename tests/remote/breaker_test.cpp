#include "remote/breaker.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kStart = seconds(1000);

// Fails a probe that is due, and says how long the next one is away.
nanoseconds fail_a_probe(Breaker& breaker) {
  const nanoseconds now = breaker.probe_at();
  EXPECT_TRUE(breaker.begin_probe(now));
  EXPECT_FALSE(breaker.probed(false, now));
  return breaker.probe_at() - now;
}

TEST(Breaker, IsClosedUntilSomethingFails) {
  Breaker breaker(FleetPolicy{}, Jitter(1));
  EXPECT_TRUE(breaker.closed());
  breaker.succeeded();
  EXPECT_TRUE(breaker.closed());
}

TEST(Breaker, OneFailureOpensItAndOnlyTheFirstIsNews) {
  Breaker breaker(FleetPolicy{}, Jitter(1));
  EXPECT_TRUE(breaker.failed(kStart));
  EXPECT_FALSE(breaker.closed());
  const nanoseconds probe_at = breaker.probe_at();
  EXPECT_FALSE(breaker.failed(kStart + milliseconds(1)));
  EXPECT_EQ(breaker.probe_at(), probe_at);
}

TEST(Breaker, HostsThatFailTogetherDoNotProbeTogether) {
  const FleetPolicy policy;
  nanoseconds earliest = seconds(9);
  nanoseconds latest{0};
  for (std::uint64_t host = 0; host < 1000; ++host) {
    Breaker breaker(policy, Jitter(host));
    (void)breaker.failed(kStart);
    earliest = std::min(earliest, breaker.probe_at() - kStart);
    latest = std::max(latest, breaker.probe_at() - kStart);
  }
  EXPECT_GE(earliest, policy.open_first * 3 / 4);
  EXPECT_LE(earliest, policy.open_first * 4 / 5);
  EXPECT_LE(latest, policy.open_first * 5 / 4);
  EXPECT_GE(latest, policy.open_first * 6 / 5);
}

TEST(Breaker, AProbeIsMadeWhenItIsDueAndByOneOnly) {
  Breaker breaker(FleetPolicy{}, Jitter(1));
  EXPECT_FALSE(breaker.begin_probe(kStart));  // nothing has failed
  (void)breaker.failed(kStart);
  EXPECT_FALSE(breaker.begin_probe(breaker.probe_at() - nanoseconds(1)));
  EXPECT_TRUE(breaker.begin_probe(breaker.probe_at()));
  EXPECT_FALSE(breaker.begin_probe(breaker.probe_at()));
  EXPECT_FALSE(breaker.closed());  // callers are not sent after a probe that may fail
}

TEST(Breaker, AProbeThatIsAnsweredClosesIt) {
  Breaker breaker(FleetPolicy{}, Jitter(1));
  (void)breaker.failed(kStart);
  ASSERT_TRUE(breaker.begin_probe(breaker.probe_at()));
  EXPECT_TRUE(breaker.probed(true, breaker.probe_at()));
  EXPECT_TRUE(breaker.closed());
}

TEST(Breaker, TheWaitDoublesWithEachFailedProbeUpToABound) {
  FleetPolicy policy;
  policy.jitter = 0;
  Breaker breaker(policy, Jitter(1));
  (void)breaker.failed(kStart);
  EXPECT_EQ(breaker.probe_at() - kStart, policy.open_first);
  EXPECT_EQ(fail_a_probe(breaker), 2 * policy.open_first);
  EXPECT_EQ(fail_a_probe(breaker), 4 * policy.open_first);
  for (int i = 0; i < 10; ++i) (void)fail_a_probe(breaker);
  EXPECT_EQ(fail_a_probe(breaker), policy.open_most);
}

TEST(Breaker, AServerThatAnswersProbesAloneIsAskedEverMoreRarely) {
  FleetPolicy policy;
  policy.jitter = 0;
  Breaker breaker(policy, Jitter(1));
  nanoseconds now = kStart;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(breaker.failed(now));
    EXPECT_EQ(breaker.probe_at() - now, policy.open_first * (1 << round));
    now = breaker.probe_at();
    ASSERT_TRUE(breaker.begin_probe(now));
    ASSERT_TRUE(breaker.probed(true, now));
  }
  breaker.succeeded();
  ASSERT_TRUE(breaker.failed(now));
  EXPECT_EQ(breaker.probe_at() - now, policy.open_first);
}

TEST(Breaker, AnAnswerToAQuestionFromBeforeNeitherClosesItNorShortensItsWaits) {
  FleetPolicy policy;
  policy.jitter = 0;
  Breaker breaker(policy, Jitter(1));
  (void)breaker.failed(kStart);
  breaker.succeeded();
  EXPECT_FALSE(breaker.closed());
  EXPECT_EQ(fail_a_probe(breaker), 2 * policy.open_first);
}

TEST(Breaker, RejectionsInARowOpenItAndAnAnswerBetweenThemBeginsTheCountAnew) {
  const FleetPolicy policy;
  Breaker breaker(policy, Jitter(1));
  for (unsigned i = 1; i < policy.rejections_in_a_row; ++i) ASSERT_FALSE(breaker.rejected(kStart));
  breaker.succeeded();
  for (unsigned i = 1; i < policy.rejections_in_a_row; ++i) ASSERT_FALSE(breaker.rejected(kStart));
  EXPECT_TRUE(breaker.closed());
  EXPECT_TRUE(breaker.rejected(kStart));
  EXPECT_FALSE(breaker.closed());
}

}  // namespace
}  // namespace kiln
