#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "remote/lease_table.hpp"
#include "support/forked.hpp"

namespace kiln::test {

/// What every LeaseTable promises. `Tables` supplies:
///   std::unique_ptr<LeaseTable> table();   a further way to the same table; also called in forked children
/// Instantiate: INSTANTIATE_TYPED_TEST_SUITE_P(Redis, LeaseTableConformance, RedisTables);
template <class Tables>
class LeaseTableConformance : public ::testing::Test {
 protected:
  using Milliseconds = std::chrono::milliseconds;
  static constexpr std::chrono::seconds kLimit{10};
  static constexpr std::chrono::seconds kLong{60};
  static constexpr Milliseconds kShort{500};  // and yet longer than a machine with much to do forgets a process

  static RequestKey key(int number) { return {sha256("request " + std::to_string(number))}; }
  static void pass(Milliseconds time) { std::this_thread::sleep_for(time); }

  /// Asks now and then, as a waiter does, until nobody has it; how long that is since the start.
  static Milliseconds until_free(LeaseTable& table, const RequestKey& request,
                                 std::chrono::steady_clock::time_point start) {
    while (table.held(request, kLimit).value() > LeaseTable::Time(0)) {
      if (std::chrono::steady_clock::now() - start > kLimit) break;
      pass(Milliseconds(5));
    }
    return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
  }

  Tables tables_;
};

TYPED_TEST_SUITE_P(LeaseTableConformance);

TYPED_TEST_P(LeaseTableConformance, OneOwnerHasALeaseUntilHeLetsGo) {
  const auto one = this->tables_.table();
  const auto other = this->tables_.table();
  const RequestKey key = this->key(1);
  EXPECT_EQ(one->held(key, this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_TRUE(one->take(key, "a", this->kLong, this->kLimit).value());
  EXPECT_FALSE(other->take(key, "b", this->kLong, this->kLimit).value());
  EXPECT_FALSE(one->take(key, "a", this->kLong, this->kLimit).value()) << "a lease was had twice";
  EXPECT_GT(other->held(key, this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_LE(other->held(key, this->kLimit).value(), this->kLong);
  ASSERT_TRUE(one->release(key, "a", this->kLimit).ok());
  EXPECT_EQ(other->held(key, this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_TRUE(other->take(key, "b", this->kLong, this->kLimit).value());
}

TYPED_TEST_P(LeaseTableConformance, OnlyItsOwnerRenewsOrReleasesALease) {
  const auto table = this->tables_.table();
  const RequestKey key = this->key(1);
  ASSERT_TRUE(table->take(key, "a", this->kLong, this->kLimit).value());
  EXPECT_FALSE(table->renew(key, "b", this->kLong, this->kLimit).value());
  ASSERT_TRUE(table->release(key, "b", this->kLimit).ok());
  EXPECT_GT(table->held(key, this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_TRUE(table->renew(key, "a", this->kLong, this->kLimit).value());
  ASSERT_TRUE(table->release(key, "a", this->kLimit).ok());
  EXPECT_FALSE(table->renew(key, "a", this->kLong, this->kLimit).value()) << "a lease was renewed that nobody had";
  EXPECT_TRUE(table->release(key, "a", this->kLimit).ok()) << "letting go of nothing is no error";
}

TYPED_TEST_P(LeaseTableConformance, ALeaseLapsesAfterItsLengthAndNotBefore) {
  const auto table = this->tables_.table();
  const RequestKey key = this->key(1);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(table->take(key, "a", this->kShort, this->kLimit).value());
  const auto passed = this->until_free(*table, key, start);
  EXPECT_GE(passed, this->kShort - std::chrono::milliseconds(10));
  EXPECT_LT(passed, std::chrono::seconds(5));
  EXPECT_TRUE(table->take(key, "b", this->kLong, this->kLimit).value());
  EXPECT_FALSE(table->renew(key, "a", this->kLong, this->kLimit).value()) << "who lost it renewed another's";
  ASSERT_TRUE(table->release(key, "a", this->kLimit).ok());
  EXPECT_GT(table->held(key, this->kLimit).value(), LeaseTable::Time(0)) << "who lost it released another's";
}

TYPED_TEST_P(LeaseTableConformance, ARenewedLeaseDoesNotLapse) {
  const auto table = this->tables_.table();
  const RequestKey key = this->key(1);
  const auto lease = std::chrono::milliseconds(1000);
  ASSERT_TRUE(table->take(key, "a", lease, this->kLimit).value());
  for (int i = 0; i < 7; ++i) {
    this->pass(lease / 5);
    ASSERT_GT(table->held(key, this->kLimit).value(), LeaseTable::Time(0)) << i;
    ASSERT_FALSE(table->take(key, "b", lease, this->kLimit).value()) << i;
    ASSERT_TRUE(table->renew(key, "a", lease, this->kLimit).value()) << i;
  }
}

TYPED_TEST_P(LeaseTableConformance, OfManyProcessesAtOnceOneGetsALeaseAndOneSucceedsALapsedOne) {
  const RequestKey key = this->key(1);
  std::vector<std::unique_ptr<Forked>> children;
  for (int i = 0; i < 12; ++i) {
    children.push_back(std::make_unique<Forked>([this, i, key](const Forked::Side& side) {
      const auto table = this->tables_.table();
      const std::string owner = "process-" + std::to_string(i);
      side.say("ready");
      (void)side.hear();
      side.say(table->take(key, owner, this->kShort, this->kLimit).value() ? "mine" : "another's");
      // Nobody renews it: it lapses, for all at about the same time.
      bool mine = false;
      const auto end = std::chrono::steady_clock::now() + 3 * this->kShort;
      while (!mine && std::chrono::steady_clock::now() < end) {
        mine = table->take(key, owner, this->kLong, this->kLimit).value();
        this->pass(std::chrono::milliseconds(1));
      }
      side.say(mine ? "mine" : "another's");
    }));
  }
  for (const auto& child : children) ASSERT_EQ(child->line(), "ready");
  for (const auto& child : children) child->say("go");
  for (const char* turn : {"first", "second"}) {
    int mine = 0;
    for (const auto& child : children) mine += child->line() == "mine" ? 1 : 0;
    EXPECT_EQ(mine, 1) << turn;
  }
}

TYPED_TEST_P(LeaseTableConformance, SoManyHedgesAreDrawnPerWindowInTheWholeFleet) {
  const auto one = this->tables_.table();
  const auto other = this->tables_.table();
  const RequestKey key = this->key(1);
  EXPECT_TRUE(one->draw(key, 2, this->kLong, this->kLimit).value());
  EXPECT_TRUE(other->draw(key, 2, this->kLong, this->kLimit).value());
  EXPECT_FALSE(one->draw(key, 2, this->kLong, this->kLimit).value());
  EXPECT_FALSE(other->draw(key, 2, this->kLong, this->kLimit).value());
  EXPECT_TRUE(one->draw(this->key(2), 1, this->kShort, this->kLimit).value());
  EXPECT_FALSE(one->draw(this->key(2), 1, this->kShort, this->kLimit).value());
  this->pass(this->kShort + std::chrono::milliseconds(50));
  EXPECT_TRUE(other->draw(this->key(2), 1, this->kShort, this->kLimit).value());
  EXPECT_FALSE(one->draw(this->key(3), 0, this->kShort, this->kLimit).value());
}

TYPED_TEST_P(LeaseTableConformance, AHedgeIsNoLeaseAndALeaseIsNoHedge) {
  const auto table = this->tables_.table();
  EXPECT_TRUE(table->draw(this->key(1), 1, this->kLong, this->kLimit).value());
  EXPECT_EQ(table->held(this->key(1), this->kLimit).value(), LeaseTable::Time(0));
  EXPECT_TRUE(table->take(this->key(1), "a", this->kLong, this->kLimit).value());
  EXPECT_TRUE(table->take(this->key(2), "a", this->kLong, this->kLimit).value());
  EXPECT_TRUE(table->draw(this->key(2), 1, this->kLong, this->kLimit).value());
}

TYPED_TEST_P(LeaseTableConformance, WithNoTimeNothingIsAsked) {
  const auto table = this->tables_.table();
  const auto taken = table->take(this->key(1), "a", this->kLong, LeaseTable::Time(0));
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error().code, Code::TimedOut);
  EXPECT_EQ(table->held(this->key(1), this->kLimit).value(), LeaseTable::Time(0));
}

TYPED_TEST_P(LeaseTableConformance, ThreadsAndForkedChildrenUseOneTableAtOnce) {
  const auto table = this->tables_.table();
  ASSERT_TRUE(table->probe(this->kLimit).ok());  // it is in use before anybody is forked
  ASSERT_TRUE(table->take(this->key(0), "parent", this->kLong, this->kLimit).value());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 1; i <= 20; ++i) {
        const std::string owner = "thread-" + std::to_string(t);
        const RequestKey key = this->key(100 * (t + 1) + i);
        if (!table->take(key, owner, this->kLong, this->kLimit).value()) ++wrong;
        if (!table->renew(key, owner, this->kLong, this->kLimit).value()) ++wrong;
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    Forked child([&](const Forked::Side& side) {
      const bool kept_out = !table->take(this->key(0), "child", this->kLong, this->kLimit).value();
      const bool own = table->take(this->key(1000 + i), "child", this->kLong, this->kLimit).value();
      side.say(kept_out && own ? "as it should be" : "not so");
    });
    EXPECT_EQ(child.line(), "as it should be");
    EXPECT_EQ(child.exit_code(), 0);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(table->renew(this->key(0), "parent", this->kLong, this->kLimit).value());
}

REGISTER_TYPED_TEST_SUITE_P(LeaseTableConformance, OneOwnerHasALeaseUntilHeLetsGo, OnlyItsOwnerRenewsOrReleasesALease,
                            ALeaseLapsesAfterItsLengthAndNotBefore, ARenewedLeaseDoesNotLapse,
                            OfManyProcessesAtOnceOneGetsALeaseAndOneSucceedsALapsedOne,
                            SoManyHedgesAreDrawnPerWindowInTheWholeFleet, AHedgeIsNoLeaseAndALeaseIsNoHedge,
                            WithNoTimeNothingIsAsked, ThreadsAndForkedChildrenUseOneTableAtOnce);

}  // namespace kiln::test
