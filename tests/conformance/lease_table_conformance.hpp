// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "remote/lease_table.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {

/// Requirements of every `LeaseTable` implementation. `Tables` supplies:
///   std::unique_ptr<LeaseTable> table();   another instance for the same table; also called in forked children
/// Instantiate: INSTANTIATE_TYPED_TEST_SUITE_P(Redis, LeaseTableConformance, RedisTables);
template <class Tables>
class LeaseTableConformance : public ::testing::Test {
 protected:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr std::chrono::seconds kLimit{60};
  static constexpr std::chrono::seconds kLong{600};  // does not expire during a test
  static constexpr Milliseconds kShort{500};         // expires during a test, on a busy machine at any time

  static RequestKey key(int number) { return {sha256("request " + std::to_string(number))}; }
  static void pass(Milliseconds time) { std::this_thread::sleep_for(time); }

  /// Polls like a waiter until the lease is free. Returns the time since `start`.
  static Milliseconds until_free(LeaseTable& table, const RequestKey& request,
                                 std::chrono::steady_clock::time_point start) {
    while (table.remaining_ttl(request, kLimit).value() > LeaseTable::Time(0)) {
      if (std::chrono::steady_clock::now() - start > kLimit) break;
      pass(Milliseconds(5));
    }
    return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
  }

  Tables tables_;
};

TYPED_TEST_SUITE_P(LeaseTableConformance);

TYPED_TEST_P(LeaseTableConformance, OneOwnerHoldsLeaseUntilRelease) {
  const auto one = this->tables_.table();
  const auto other = this->tables_.table();
  const RequestKey key = this->key(1);
  EXPECT_EQ(one->remaining_ttl(key, this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_TRUE(one->try_acquire(key, "a", this->kLong, this->kLimit).value());
  EXPECT_FALSE(other->try_acquire(key, "b", this->kLong, this->kLimit).value());
  EXPECT_FALSE(one->try_acquire(key, "a", this->kLong, this->kLimit).value()) << "a lease was granted twice";
  EXPECT_GT(other->remaining_ttl(key, this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_LE(other->remaining_ttl(key, this->kLimit).value(), this->kLong);
  ASSERT_TRUE(one->release(key, "a", this->kLimit).has_value());
  EXPECT_EQ(other->remaining_ttl(key, this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_TRUE(other->try_acquire(key, "b", this->kLong, this->kLimit).value());
}

TYPED_TEST_P(LeaseTableConformance, OnlyOwnerRenewsOrReleasesLease) {
  const auto table = this->tables_.table();
  const RequestKey key = this->key(1);
  ASSERT_TRUE(table->try_acquire(key, "a", this->kLong, this->kLimit).value());
  EXPECT_FALSE(table->renew(key, "b", this->kLong, this->kLimit).value());
  ASSERT_TRUE(table->release(key, "b", this->kLimit).has_value());
  EXPECT_GT(table->remaining_ttl(key, this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_TRUE(table->renew(key, "a", this->kLong, this->kLimit).value());
  ASSERT_TRUE(table->release(key, "a", this->kLimit).has_value());
  EXPECT_FALSE(table->renew(key, "a", this->kLong, this->kLimit).value()) << "a free lease was renewed";
  EXPECT_TRUE(table->release(key, "a", this->kLimit).has_value()) << "releasing a free lease is not an error";
}

TYPED_TEST_P(LeaseTableConformance, LeaseExpiresAfterItsTtlAndNotBefore) {
  const auto table = this->tables_.table();
  const RequestKey key = this->key(1);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(table->try_acquire(key, "a", this->kShort, this->kLimit).value());
  const auto passed = this->until_free(*table, key, start);
  EXPECT_GE(passed, this->kShort - std::chrono::milliseconds(10));
  EXPECT_LT(passed, std::chrono::seconds(30));
  EXPECT_TRUE(table->try_acquire(key, "b", this->kLong, this->kLimit).value());
  EXPECT_FALSE(table->renew(key, "a", this->kLong, this->kLimit).value())
      << "the former owner renewed the lease of another";
  ASSERT_TRUE(table->release(key, "a", this->kLimit).has_value());
  EXPECT_GT(table->remaining_ttl(key, this->kLimit).value(), LeaseTable::Time(0))
      << "the former owner released the lease of another";
}

TYPED_TEST_P(LeaseTableConformance, RenewedLeaseDoesNotExpire) {
  const auto table = this->tables_.table();
  const RequestKey key = this->key(1);
  const auto lease = std::chrono::milliseconds(5000);  // a busy machine may stop this process for seconds
  ASSERT_TRUE(table->try_acquire(key, "a", lease, this->kLimit).value());
  for (int i = 0; i < 8; ++i) {
    this->pass(lease / 7);
    ASSERT_GT(table->remaining_ttl(key, this->kLimit).value(), LeaseTable::Time(0)) << i;
    ASSERT_FALSE(table->try_acquire(key, "b", lease, this->kLimit).value()) << i;
    ASSERT_TRUE(table->renew(key, "a", lease, this->kLimit).value()) << i;
  }
}

TYPED_TEST_P(LeaseTableConformance, OneOfManyProcessesGetsLeaseAndOneGetsExpiredLease) {
  // Shared with the children: the number of processes that got the expired lease.
  void* const shared =
      mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const taken = new (shared) std::atomic<int>(0);
  const RequestKey key = this->key(1);
  std::vector<std::unique_ptr<Forked>> children;
  for (int i = 0; i < 12; ++i) {
    children.push_back(std::make_unique<Forked>([this, i, key, taken](const Forked::Side& side) {
      const auto table = this->tables_.table();
      const std::string owner = "process-" + std::to_string(i);
      side.say("ready");
      (void)side.receive();
      side.say(table->try_acquire(key, owner, this->kLong, this->kLimit).value() ? "mine" : "another's");
      (void)side.receive();
      // The lease expires for all processes at about the same time. When one of them has it, the others try on.
      bool mine = false;
      const auto end = std::chrono::steady_clock::now() + this->kLimit;
      for (int vain = 0; !mine && vain < 100 && std::chrono::steady_clock::now() < end; vain += *taken > 0 ? 1 : 0) {
        mine = table->try_acquire(key, owner, this->kLong, this->kLimit).value();
        if (mine) ++*taken;
        this->pass(std::chrono::milliseconds(1));
      }
      side.say(mine ? "mine" : "another's");
    }));
  }
  for (const auto& child : children) ASSERT_EQ(child->line(), "ready");
  for (const auto& child : children) child->say("go");
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (children[i]->line() == "mine") owners.push_back(i);
  }
  ASSERT_EQ(owners.size(), 1u);
  const std::string owner = "process-" + std::to_string(owners[0]);
  ASSERT_TRUE(this->tables_.table()->renew(key, owner, this->kShort, this->kLimit).value());
  for (const auto& child : children) child->say("go");
  int next_owners = 0;
  for (const auto& child : children) next_owners += child->line() == "mine" ? 1 : 0;
  EXPECT_EQ(next_owners, 1);
  munmap(shared, sizeof(std::atomic<int>));
}

TYPED_TEST_P(LeaseTableConformance, HedgesPerWindowAreLimitedAcrossFleet) {
  const auto one = this->tables_.table();
  const auto other = this->tables_.table();
  const RequestKey key = this->key(1);
  EXPECT_TRUE(one->try_hedge(key, 2, this->kLong, this->kLimit).value());
  EXPECT_TRUE(other->try_hedge(key, 2, this->kLong, this->kLimit).value());
  EXPECT_FALSE(one->try_hedge(key, 2, this->kLong, this->kLimit).value());
  EXPECT_FALSE(other->try_hedge(key, 2, this->kLong, this->kLimit).value());
  EXPECT_TRUE(one->try_hedge(this->key(2), 1, this->kShort, this->kLimit).value());
  this->pass(this->kShort + std::chrono::milliseconds(50));
  EXPECT_TRUE(other->try_hedge(this->key(2), 1, this->kShort, this->kLimit).value());
  EXPECT_FALSE(one->try_hedge(this->key(3), 0, this->kShort, this->kLimit).value());
}

TYPED_TEST_P(LeaseTableConformance, HedgesAndLeasesAreIndependent) {
  const auto table = this->tables_.table();
  EXPECT_TRUE(table->try_hedge(this->key(1), 1, this->kLong, this->kLimit).value());
  EXPECT_EQ(table->remaining_ttl(this->key(1), this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_TRUE(table->try_acquire(this->key(1), "a", this->kLong, this->kLimit).value());
  EXPECT_TRUE(table->try_acquire(this->key(2), "a", this->kLong, this->kLimit).value());
  EXPECT_TRUE(table->try_hedge(this->key(2), 1, this->kLong, this->kLimit).value());
}

TYPED_TEST_P(LeaseTableConformance, ZeroTimeoutSendsNoRequest) {
  const auto table = this->tables_.table();
  const auto taken = table->try_acquire(this->key(1), "a", this->kLong, LeaseTable::Time(0));
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, Code::TimedOut);
  EXPECT_EQ(table->remaining_ttl(this->key(1), this->kLimit).value(), LeaseTable::Time(0));
}

TYPED_TEST_P(LeaseTableConformance, ThreadsAndForkedChildrenShareTable) {
  const auto table = this->tables_.table();
  ASSERT_TRUE(table->probe(this->kLimit).has_value());  // the table is in use before the fork
  ASSERT_TRUE(table->try_acquire(this->key(0), "parent", this->kLong, this->kLimit).value());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 20; ++i) {
        const std::string owner = "thread-" + std::to_string(t);
        const RequestKey key = this->key(100 * (t + 1) + i);
        if (!table->try_acquire(key, owner, this->kLong, this->kLimit).value()) ++wrong;
        if (!table->renew(key, owner, this->kLong, this->kLimit).value()) ++wrong;
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    Forked child([&](const Forked::Side& side) {
      const bool kept_out = !table->try_acquire(this->key(0), "child", this->kLong, this->kLimit).value();
      const bool own = table->try_acquire(this->key(1000 + i), "child", this->kLong, this->kLimit).value();
      side.say(kept_out && own ? "ok" : "failed");
    });
    EXPECT_EQ(child.line(), "ok");
    EXPECT_EQ(child.exit_code(), 0);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(table->renew(this->key(0), "parent", this->kLong, this->kLimit).value());
}

REGISTER_TYPED_TEST_SUITE_P(LeaseTableConformance, OneOwnerHoldsLeaseUntilRelease, OnlyOwnerRenewsOrReleasesLease,
                            LeaseExpiresAfterItsTtlAndNotBefore, RenewedLeaseDoesNotExpire,
                            OneOfManyProcessesGetsLeaseAndOneGetsExpiredLease, HedgesPerWindowAreLimitedAcrossFleet,
                            HedgesAndLeasesAreIndependent, ZeroTimeoutSendsNoRequest,
                            ThreadsAndForkedChildrenShareTable);

}  // namespace kiln::test
