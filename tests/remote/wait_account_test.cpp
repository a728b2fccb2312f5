// SPDX-License-Identifier: Apache-2.0
#include "remote/wait_account.hpp"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using Admission = WaitAccount::Admission;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kUptime = hours(1000);  // the steady clock does not start at 0

// A query that takes this time.
void query(WaitAccount& account, nanoseconds took, bool answered = true) {
  account.begin_query();
  account.end_query(took, answered);
}

// An account whose balance is 0 at `kUptime`, by one query that was answered.
WaitAccount empty_account(const FleetPolicy& policy) {
  WaitAccount account(policy);
  EXPECT_EQ(account.admit(kUptime), Admission::Ask);
  query(account, policy.initial_wait);
  EXPECT_EQ(account.admit(kUptime), Admission::Skip);
  return account;
}

TEST(WaitAccount, TimeBeforeTheFirstRequestEarnsNothing) {
  const FleetPolicy policy;
  WaitAccount account(policy);
  EXPECT_EQ(account.admit(kUptime), Admission::Ask);
  query(account, policy.initial_wait - nanoseconds(1));
  EXPECT_EQ(account.admit(kUptime), Admission::Ask);
  query(account, nanoseconds(1));
  EXPECT_EQ(account.admit(kUptime), Admission::Skip);
}

TEST(WaitAccount, EachAnswerAllowsOneMoreQueryAtATime) {
  for (int answers = 0; answers < 5; ++answers) {
    WaitAccount account{FleetPolicy()};
    for (int i = 0; i < answers; ++i) query(account, milliseconds(1));
    for (int i = 0; i < answers + 1; ++i) {
      ASSERT_EQ(account.admit(kUptime), Admission::Ask) << answers;
      account.begin_query();
    }
    EXPECT_EQ(account.admit(kUptime), Admission::Wait) << answers;
  }
}

TEST(WaitAccount, AfterATimeoutOneRequestAsksAndTheOthersCompile) {
  WaitAccount account{FleetPolicy()};
  for (int i = 0; i < 8; ++i) query(account, milliseconds(1));
  query(account, milliseconds(500), false);
  EXPECT_EQ(account.admit(kUptime), Admission::Ask);
  account.begin_query();
  EXPECT_EQ(account.admit(kUptime), Admission::Skip);
  account.end_query(milliseconds(1), true);
  account.begin_query();
  account.begin_query();
  EXPECT_EQ(account.admit(kUptime), Admission::Wait);  // the server answers again
}

TEST(WaitAccount, HitsEarnAPartOfTheCompileTime) {
  const FleetPolicy policy;
  WaitAccount account = empty_account(policy);
  account.saved(nanoseconds(0));  // not known
  EXPECT_EQ(account.admit(kUptime), Admission::Skip);
  account.saved(seconds(2));
  EXPECT_EQ(account.admit(kUptime), Admission::Ask);
  query(account, nanoseconds(static_cast<std::int64_t>(2e9 * policy.wait_per_saved)));
  EXPECT_EQ(account.admit(kUptime), Admission::Skip);
}

TEST(WaitAccount, PassingTimeEarnsALittle) {
  const FleetPolicy policy;
  WaitAccount account = empty_account(policy);
  EXPECT_EQ(account.admit(kUptime - seconds(1)), Admission::Skip);  // a clock that was read before
  EXPECT_EQ(account.admit(kUptime + seconds(10)), Admission::Ask);
  query(account, nanoseconds(static_cast<std::int64_t>(11e9 * policy.wait_per_time)));
  EXPECT_EQ(account.admit(kUptime + seconds(10)), Admission::Skip);
}

TEST(WaitAccount, BalanceIsBounded) {
  const FleetPolicy policy;
  WaitAccount account(policy);
  account.saved(hours(100));
  EXPECT_EQ(account.admit(kUptime), Admission::Ask);
  EXPECT_EQ(account.admit(kUptime + hours(100)), Admission::Ask);
  query(account, policy.max_wait);
  EXPECT_EQ(account.admit(kUptime + hours(100)), Admission::Skip);
}

TEST(WaitAccount, OnePauseOfTheServerIsForgottenWithinMinutes) {
  const FleetPolicy policy;
  WaitAccount account(policy);
  for (int i = 0; i < 128; ++i) query(account, milliseconds(1));
  for (int i = 0; i < 128; ++i) account.begin_query();
  for (int i = 0; i < 128; ++i) account.end_query(seconds(2), true);
  EXPECT_EQ(account.admit(kUptime), Admission::Skip);
  EXPECT_EQ(account.admit(kUptime + std::chrono::minutes(3)), Admission::Ask);
}

TEST(WaitAccount, QueriesInFlightAreExpectedToTakeAsLongAsTheLastOnes) {
  FleetPolicy policy;
  policy.initial_wait = seconds(10);
  WaitAccount account(policy);
  for (int i = 0; i < 8; ++i) query(account, seconds(1));  // leaves 2 s; the average is more than half a second
  int asked = 0;
  while (account.admit(kUptime) == Admission::Ask) {
    account.begin_query();
    ++asked;
  }
  EXPECT_EQ(account.admit(kUptime), Admission::Skip);
  EXPECT_GE(asked, 2);
  EXPECT_LE(asked, 4);
}

TEST(WaitAccount, RecoveredServerIsAskedAgain) {
  const FleetPolicy policy;
  WaitAccount account = empty_account(policy);
  query(account, seconds(100), false);
  account.on_recovered();
  EXPECT_EQ(account.admit(kUptime), Admission::Ask);
  account.begin_query();
  account.end_query(policy.initial_wait / 4, true);
  EXPECT_EQ(account.admit(kUptime), Admission::Skip);

  WaitAccount full(policy);
  full.on_recovered();
  query(full, policy.initial_wait / 2);
  EXPECT_EQ(full.admit(kUptime), Admission::Ask);  // a recovery takes nothing away
}

}  // namespace
}  // namespace kiln::test
