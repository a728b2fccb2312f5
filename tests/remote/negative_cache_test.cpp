// SPDX-License-Identifier: Apache-2.0
#include "remote/negative_cache.hpp"

#include <gtest/gtest.h>

#include "support/fixtures/artifacts.hpp"

namespace kiln {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kNow = seconds(1000);

Digest name(std::uint64_t number) { return test::key_number(number).digest; }

TEST(NegativeCache, RemembersMissUntilItExpires) {
  const FleetPolicy policy;
  NegativeCache cache(policy, Jitter(1));
  EXPECT_FALSE(cache.absent(name(1), kNow));
  cache.remember(name(1), kNow);
  EXPECT_TRUE(cache.absent(name(1), kNow + policy.negative_ttl / 2));
  EXPECT_FALSE(cache.absent(name(2), kNow));
  EXPECT_FALSE(cache.absent(name(1), kNow + policy.negative_ttl * 5 / 4));
  EXPECT_EQ(cache.size(), 0u);
}

TEST(NegativeCache, ExpiryHasJitter) {
  const FleetPolicy policy;
  int again = 0;
  for (std::uint64_t host = 0; host < 1000; ++host) {
    NegativeCache cache(policy, Jitter(host));
    cache.remember(name(1), kNow);
    EXPECT_TRUE(cache.absent(name(1), kNow + policy.negative_ttl * 3 / 4 - nanoseconds(1)));
    again += cache.absent(name(1), kNow + policy.negative_ttl) ? 0 : 1;
  }
  EXPECT_GT(again, 400);
  EXPECT_LT(again, 600);
}

TEST(NegativeCache, ForgottenNameIsNotAbsent) {
  NegativeCache cache(FleetPolicy{}, Jitter(1));
  cache.remember(name(1), kNow);
  cache.forget(name(1));
  cache.forget(name(2));  // unknown name
  EXPECT_FALSE(cache.absent(name(1), kNow));
}

TEST(NegativeCache, EvictsOldestWhenFull) {
  FleetPolicy policy;
  policy.max_negative_entries = 3;
  NegativeCache cache(policy, Jitter(1));
  for (const std::uint64_t number : {1, 2, 3, 1, 4}) cache.remember(name(number), kNow);
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_TRUE(cache.absent(name(1), kNow));  // remembered again after the second name
  EXPECT_FALSE(cache.absent(name(2), kNow));
  EXPECT_TRUE(cache.absent(name(3), kNow));
  EXPECT_TRUE(cache.absent(name(4), kNow));
}

TEST(NegativeCache, ZeroCapacityRemembersNothing) {
  FleetPolicy policy;
  policy.max_negative_entries = 0;
  NegativeCache cache(policy, Jitter(1));
  cache.remember(name(1), kNow);
  EXPECT_FALSE(cache.absent(name(1), kNow));
}

}  // namespace
}  // namespace kiln
