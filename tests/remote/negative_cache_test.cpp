#include "remote/negative_cache.hpp"

#include <gtest/gtest.h>

#include "support/artifacts.hpp"

namespace kiln {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kNow = seconds(1000);

Digest name(std::uint64_t number) { return test::key_number(number).digest; }

TEST(NegativeCache, RemembersAnAbsenceForAWhile) {
  const FleetPolicy policy;
  NegativeCache cache(policy, Jitter(1));
  EXPECT_FALSE(cache.absent(name(1), kNow));
  cache.remember(name(1), kNow);
  EXPECT_TRUE(cache.absent(name(1), kNow + policy.absent_for / 2));
  EXPECT_FALSE(cache.absent(name(2), kNow));
  EXPECT_FALSE(cache.absent(name(1), kNow + policy.absent_for * 5 / 4));
  EXPECT_EQ(cache.size(), 0u);
}

TEST(NegativeCache, HostsThatAskedTogetherDoNotAskAgainTogether) {
  const FleetPolicy policy;
  int again = 0;
  for (std::uint64_t host = 0; host < 1000; ++host) {
    NegativeCache cache(policy, Jitter(host));
    cache.remember(name(1), kNow);
    EXPECT_TRUE(cache.absent(name(1), kNow + policy.absent_for * 3 / 4 - nanoseconds(1)));
    again += cache.absent(name(1), kNow + policy.absent_for) ? 0 : 1;
  }
  EXPECT_GT(again, 400);
  EXPECT_LT(again, 600);
}

TEST(NegativeCache, WhatIsForgottenIsAskedAgain) {
  NegativeCache cache(FleetPolicy{}, Jitter(1));
  cache.remember(name(1), kNow);
  cache.forget(name(1));
  cache.forget(name(2));  // never known
  EXPECT_FALSE(cache.absent(name(1), kNow));
}

TEST(NegativeCache, TheOldestGoesWhenItIsFull) {
  FleetPolicy policy;
  policy.most_absent = 3;
  NegativeCache cache(policy, Jitter(1));
  for (const std::uint64_t number : {1, 2, 3, 1, 4}) cache.remember(name(number), kNow);
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_TRUE(cache.absent(name(1), kNow));  // remembered again after the second
  EXPECT_FALSE(cache.absent(name(2), kNow));
  EXPECT_TRUE(cache.absent(name(3), kNow));
  EXPECT_TRUE(cache.absent(name(4), kNow));
}

TEST(NegativeCache, OneForNothingRemembersNothing) {
  FleetPolicy policy;
  policy.most_absent = 0;
  NegativeCache cache(policy, Jitter(1));
  cache.remember(name(1), kNow);
  EXPECT_FALSE(cache.absent(name(1), kNow));
}

}  // namespace
}  // namespace kiln
