// SPDX-License-Identifier: Apache-2.0
#include "remote/circuit_breaker.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kStart = seconds(1000);

// Fails the probe that is due. Returns the time until the next one.
nanoseconds fail_a_probe(CircuitBreaker& breaker) {
  const nanoseconds now = breaker.probe_at();
  EXPECT_TRUE(breaker.begin_probe(now));
  EXPECT_FALSE(breaker.probed(false, now));
  return breaker.probe_at() - now;
}

TEST(CircuitBreaker, IsClosedUntilFirstFailure) {
  CircuitBreaker breaker(FleetPolicy{}, Jitter(1));
  EXPECT_TRUE(breaker.is_closed());
  breaker.succeeded(nanoseconds(0));
  EXPECT_TRUE(breaker.is_closed());
}

TEST(CircuitBreaker, OpensOnFirstFailureAndReportsItOnce) {
  CircuitBreaker breaker(FleetPolicy{}, Jitter(1));
  EXPECT_TRUE(breaker.failed(kStart));
  EXPECT_FALSE(breaker.is_closed());
  const nanoseconds probe_at = breaker.probe_at();
  EXPECT_FALSE(breaker.failed(kStart + milliseconds(1)));
  EXPECT_EQ(breaker.probe_at(), probe_at);
}

TEST(CircuitBreaker, TimeoutMakesItSlowAndALongTimeoutOpensIt) {
  const FleetPolicy policy;
  CircuitBreaker breaker(policy, Jitter(1));
  EXPECT_EQ(breaker.query_timeout(), policy.usable_budget(policy.query_timeout));
  EXPECT_EQ(breaker.timed_out(kStart, breaker.query_timeout()), CircuitBreaker::Change::BecameSlow);
  EXPECT_FALSE(breaker.is_closed());
  EXPECT_TRUE(breaker.is_usable());
  EXPECT_FALSE(breaker.answers());
  EXPECT_EQ(breaker.query_timeout(), policy.usable_budget(policy.slow_query_timeout));
  // Another request that was sent before the first one timed out.
  EXPECT_EQ(breaker.timed_out(kStart, policy.usable_budget(policy.query_timeout)), CircuitBreaker::Change::None);
  EXPECT_EQ(breaker.timed_out(kStart, breaker.query_timeout()), CircuitBreaker::Change::Opened);
  EXPECT_FALSE(breaker.is_usable());
}

TEST(CircuitBreaker, OnlyAFastAnswerClosesASlowCircuit) {
  const FleetPolicy policy;
  CircuitBreaker breaker(policy, Jitter(1));
  (void)breaker.timed_out(kStart, policy.budget);
  EXPECT_FALSE(breaker.succeeded(policy.budget + milliseconds(1)));
  EXPECT_TRUE(breaker.answers());
  EXPECT_FALSE(breaker.is_closed());
  EXPECT_TRUE(breaker.succeeded(policy.budget));
  EXPECT_TRUE(breaker.is_closed());
  EXPECT_FALSE(breaker.succeeded(policy.budget));
}

TEST(CircuitBreaker, FailedProbeLeavesASlowCircuitUsable) {
  CircuitBreaker breaker(FleetPolicy{}, Jitter(1));
  (void)breaker.timed_out(kStart, milliseconds(95));
  (void)fail_a_probe(breaker);
  EXPECT_TRUE(breaker.is_usable());
  ASSERT_TRUE(breaker.begin_probe(breaker.probe_at()));
  EXPECT_TRUE(breaker.is_usable());
  EXPECT_TRUE(breaker.probed(true, breaker.probe_at()));
  EXPECT_TRUE(breaker.is_closed());
}

TEST(CircuitBreaker, HostsThatFailTogetherDoNotProbeTogether) {
  const FleetPolicy policy;
  nanoseconds earliest = seconds(9);
  nanoseconds latest{0};
  for (std::uint64_t host = 0; host < 1000; ++host) {
    CircuitBreaker breaker(policy, Jitter(host));
    (void)breaker.failed(kStart);
    earliest = std::min(earliest, breaker.probe_at() - kStart);
    latest = std::max(latest, breaker.probe_at() - kStart);
  }
  EXPECT_GE(earliest, policy.initial_backoff * 3 / 4);
  EXPECT_LE(earliest, policy.initial_backoff * 4 / 5);
  EXPECT_LE(latest, policy.initial_backoff * 5 / 4);
  EXPECT_GE(latest, policy.initial_backoff * 6 / 5);
}

TEST(CircuitBreaker, ProbeStartsWhenDueAndOnlyOnce) {
  CircuitBreaker breaker(FleetPolicy{}, Jitter(1));
  EXPECT_FALSE(breaker.begin_probe(kStart));  // nothing has failed
  (void)breaker.failed(kStart);
  EXPECT_FALSE(breaker.begin_probe(breaker.probe_at() - nanoseconds(1)));
  EXPECT_TRUE(breaker.begin_probe(breaker.probe_at()));
  EXPECT_FALSE(breaker.begin_probe(breaker.probe_at()));
  EXPECT_FALSE(breaker.is_closed());  // callers send no requests during a probe that may fail
}

TEST(CircuitBreaker, SuccessfulProbeCloses) {
  CircuitBreaker breaker(FleetPolicy{}, Jitter(1));
  (void)breaker.failed(kStart);
  ASSERT_TRUE(breaker.begin_probe(breaker.probe_at()));
  EXPECT_TRUE(breaker.probed(true, breaker.probe_at()));
  EXPECT_TRUE(breaker.is_closed());
}

TEST(CircuitBreaker, BackoffDoublesUpToMaximum) {
  FleetPolicy policy;
  policy.jitter = 0;
  CircuitBreaker breaker(policy, Jitter(1));
  (void)breaker.failed(kStart);
  EXPECT_EQ(breaker.probe_at() - kStart, policy.initial_backoff);
  EXPECT_EQ(fail_a_probe(breaker), 2 * policy.initial_backoff);
  EXPECT_EQ(fail_a_probe(breaker), 4 * policy.initial_backoff);
  for (int i = 0; i < 10; ++i) (void)fail_a_probe(breaker);
  EXPECT_EQ(fail_a_probe(breaker), policy.max_backoff);
}

TEST(CircuitBreaker, BackoffGrowsIfOnlyProbesSucceed) {
  FleetPolicy policy;
  policy.jitter = 0;
  CircuitBreaker breaker(policy, Jitter(1));
  nanoseconds now = kStart;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(breaker.failed(now));
    EXPECT_EQ(breaker.probe_at() - now, policy.initial_backoff * (1 << round));
    now = breaker.probe_at();
    ASSERT_TRUE(breaker.begin_probe(now));
    ASSERT_TRUE(breaker.probed(true, now));
  }
  breaker.succeeded(nanoseconds(0));
  ASSERT_TRUE(breaker.failed(now));
  EXPECT_EQ(breaker.probe_at() - now, policy.initial_backoff);
}

TEST(CircuitBreaker, LateSuccessNeitherClosesNorResetsBackoff) {
  FleetPolicy policy;
  policy.jitter = 0;
  CircuitBreaker breaker(policy, Jitter(1));
  (void)breaker.failed(kStart);
  breaker.succeeded(nanoseconds(0));
  EXPECT_FALSE(breaker.is_closed());
  EXPECT_EQ(fail_a_probe(breaker), 2 * policy.initial_backoff);
}

TEST(CircuitBreaker, ConsecutiveRejectionsOpenAndSuccessResetsCount) {
  const FleetPolicy policy;
  CircuitBreaker breaker(policy, Jitter(1));
  for (unsigned i = 1; i < policy.max_consecutive_rejections; ++i) ASSERT_FALSE(breaker.rejected(kStart));
  breaker.succeeded(nanoseconds(0));
  for (unsigned i = 1; i < policy.max_consecutive_rejections; ++i) ASSERT_FALSE(breaker.rejected(kStart));
  EXPECT_TRUE(breaker.is_closed());
  EXPECT_TRUE(breaker.rejected(kStart));
  EXPECT_FALSE(breaker.is_closed());
}

}  // namespace
}  // namespace kiln
