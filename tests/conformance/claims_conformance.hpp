#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "claim/claims.hpp"
#include "support/forked.hpp"

namespace kiln::test {

/// What every Claims promises. `Parties` supplies:
///   std::unique_ptr<Claims> party();        a further party to the same claims; also called in forked children
///   std::chrono::milliseconds takeover();   how soon after its holder's death a claim can be had again
/// Instantiate: INSTANTIATE_TYPED_TEST_SUITE_P(Local, ClaimsConformance, LocalParties);
template <class Parties>
class ClaimsConformance : public ::testing::Test {
 protected:
  using Milliseconds = std::chrono::milliseconds;

  static RequestKey key(int number) { return {sha256("request " + std::to_string(number))}; }

  /// A process that holds the claim once it has said "mine", until it is told to let go.
  Forked holder(int number, bool with_sleeping_child = false) {
    Forked child([this, number, with_sleeping_child](const Forked::Side& side) {
      const auto claims = parties_.party();
      auto answer = claims->acquire(key(number), Milliseconds(0));
      if (with_sleeping_child && fork() == 0) {
        // It inherits everything and outlives its parent: until the test closes the pipe.
        answer.claim.release();
        while (side.hear()) {
        }
        _exit(0);
      }
      side.say(answer.outcome == Claims::Outcome::Mine ? "mine" : "not mine: " + answer.reason);
      (void)side.hear();
      answer.claim.reset();
      side.say("released");
      (void)side.hear();
    });
    EXPECT_EQ(child.line(), "mine");
    return child;
  }

  /// Asks until the claim is its own, as a caller that finds nothing in the store does; how long that took.
  static Milliseconds until_mine(Claims& claims, const RequestKey& request, Milliseconds limit) {
    const auto start = std::chrono::steady_clock::now();
    const auto passed = [&] {
      return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
    };
    while (passed() < limit && claims.acquire(request, limit - passed()).outcome != Claims::Outcome::Mine) {
    }
    return passed();
  }

  Parties parties_;
};

TYPED_TEST_SUITE_P(ClaimsConformance);

TYPED_TEST_P(ClaimsConformance, OnlyOnePartyGetsARequest) {
  using Outcome = Claims::Outcome;
  const auto first = this->parties_.party();
  const auto second = this->parties_.party();
  auto mine = first->acquire(this->key(1), std::chrono::milliseconds(0));
  ASSERT_EQ(mine.outcome, Outcome::Mine) << mine.reason;
  ASSERT_NE(mine.claim, nullptr);
  EXPECT_EQ(second->acquire(this->key(1), std::chrono::milliseconds(0)).outcome, Outcome::TimedOut);
  EXPECT_EQ(first->acquire(this->key(1), std::chrono::milliseconds(0)).outcome, Outcome::TimedOut);
  mine.claim.reset();
  EXPECT_EQ(second->acquire(this->key(1), std::chrono::milliseconds(0)).outcome, Outcome::Mine);
}

TYPED_TEST_P(ClaimsConformance, AnotherProcessIsKeptOutUntilTheHolderLetsGo) {
  using Outcome = Claims::Outcome;
  Forked holder = this->holder(1);
  const auto here = this->parties_.party();
  const auto answer = here->acquire(this->key(1), std::chrono::milliseconds(0));
  EXPECT_EQ(answer.outcome, Outcome::TimedOut);
  EXPECT_EQ(answer.claim, nullptr);
  EXPECT_FALSE(answer.reason.empty());
  holder.say("let go");
  ASSERT_EQ(holder.line(), "released");
  EXPECT_EQ(here->acquire(this->key(1), std::chrono::milliseconds(0)).outcome, Outcome::Mine);
}

TYPED_TEST_P(ClaimsConformance, AWaiterIsToldThatTheHolderFinishedWhicheverProcessHeldIt) {
  using Outcome = Claims::Outcome;
  const auto here = this->parties_.party();
  {
    Forked holder = this->holder(1);
    std::thread later([&holder] {
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      holder.say("let go");
    });
    const auto answer = here->acquire(this->key(1), std::chrono::seconds(20));
    EXPECT_EQ(answer.outcome, Outcome::Finished) << answer.reason;
    EXPECT_EQ(answer.claim, nullptr);
    later.join();
  }
  auto mine = here->acquire(this->key(2), std::chrono::milliseconds(0));
  ASSERT_EQ(mine.outcome, Outcome::Mine);
  const auto other = this->parties_.party();
  std::thread later([&mine] {
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    mine.claim.reset();
  });
  EXPECT_EQ(other->acquire(this->key(2), std::chrono::seconds(20)).outcome, Outcome::Finished);
  later.join();
}

TYPED_TEST_P(ClaimsConformance, AWaitEndsAtItsDeadlineAndNotBefore) {
  using Outcome = Claims::Outcome;
  Forked holder = this->holder(1);
  const auto here = this->parties_.party();
  const auto mine = here->acquire(this->key(2), std::chrono::milliseconds(0));
  for (const int number : {1, 2}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(here->acquire(this->key(number), std::chrono::milliseconds(120)).outcome, Outcome::TimedOut);
    const auto passed = std::chrono::steady_clock::now() - start;
    EXPECT_GE(passed, std::chrono::milliseconds(120));
    EXPECT_LT(passed, std::chrono::milliseconds(900));
  }
}

TYPED_TEST_P(ClaimsConformance, AWaitThatIsNotWantedAnyMoreEndsSoon) {
  Forked holder = this->holder(1);
  const auto here = this->parties_.party();
  std::stop_source wanted;
  std::thread later([&wanted] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    wanted.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(here->acquire(this->key(1), std::chrono::seconds(30), wanted.get_token()).outcome,
            Claims::Outcome::TimedOut);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  later.join();
}

TYPED_TEST_P(ClaimsConformance, DifferentRequestsDoNotDisturbEachOther) {
  using Outcome = Claims::Outcome;
  Forked holder = this->holder(1);
  const auto here = this->parties_.party();
  std::vector<Claims::Answer> held;
  for (int number = 2; number < 50; ++number) {
    held.push_back(here->acquire(this->key(number), std::chrono::milliseconds(0)));
    ASSERT_EQ(held.back().outcome, Outcome::Mine) << number;
  }
  held.erase(held.begin());
  Forked looker([this](const Forked::Side& side) {
    const auto there = this->parties_.party();
    const auto outcome = [&](int number) { return there->acquire(this->key(number), {}).outcome; };
    side.say(outcome(2) == Outcome::Mine && outcome(3) == Outcome::TimedOut && outcome(1) == Outcome::TimedOut
                 ? "as it should be"
                 : "not so");
  });
  EXPECT_EQ(looker.line(), "as it should be");
}

TYPED_TEST_P(ClaimsConformance, AClaimMayBeReleasedOnAnotherThread) {
  const auto here = this->parties_.party();
  auto mine = here->acquire(this->key(1), std::chrono::milliseconds(0));
  std::thread([claim = std::move(mine.claim)]() mutable { claim.reset(); }).join();
  EXPECT_EQ(here->acquire(this->key(1), std::chrono::milliseconds(0)).outcome, Claims::Outcome::Mine);
}

TYPED_TEST_P(ClaimsConformance, AClaimOutlivesItsPartyObject) {
  auto first = this->parties_.party();
  auto mine = first->acquire(this->key(1), std::chrono::milliseconds(0));
  first.reset();
  const auto second = this->parties_.party();
  EXPECT_EQ(second->acquire(this->key(1), std::chrono::milliseconds(0)).outcome, Claims::Outcome::TimedOut);
  mine.claim.reset();
  EXPECT_EQ(second->acquire(this->key(1), std::chrono::milliseconds(0)).outcome, Claims::Outcome::Mine);
}

TYPED_TEST_P(ClaimsConformance, AKilledHolderIsSucceededAlsoWhileAForkedChildOfItSleeps) {
  const auto here = this->parties_.party();
  int number = 0;
  for (const bool with_sleeping_child : {false, true}) {
    Forked holder = this->holder(++number, with_sleeping_child);
    ASSERT_EQ(here->acquire(this->key(number), std::chrono::milliseconds(0)).outcome, Claims::Outcome::TimedOut);
    holder.kill_now();
    EXPECT_LT(this->until_mine(*here, this->key(number), std::chrono::seconds(20)), this->parties_.takeover());
  }
}

TYPED_TEST_P(ClaimsConformance, SixtyFourWaitingProcessesAllFinishSoonAfterTheRelease) {
  Forked holder = this->holder(1);
  std::vector<std::unique_ptr<Forked>> waiting;
  for (int i = 0; i < 64; ++i) {
    waiting.push_back(std::make_unique<Forked>([this](const Forked::Side& side) {
      const auto there = this->parties_.party();
      side.say("ready");
      const auto answer = there->acquire(this->key(1), std::chrono::seconds(30));
      // One that was slow to start may find it free: then it is his, for a moment.
      const bool good = answer.outcome == Claims::Outcome::Finished || answer.outcome == Claims::Outcome::Mine;
      side.say(good ? "done" : "failed: " + answer.reason);
    }));
  }
  for (const auto& child : waiting) ASSERT_EQ(child->line(), "ready");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto start = std::chrono::steady_clock::now();
  holder.say("let go");
  for (const auto& child : waiting) EXPECT_EQ(child->line(), "done");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
}

REGISTER_TYPED_TEST_SUITE_P(ClaimsConformance, OnlyOnePartyGetsARequest, AnotherProcessIsKeptOutUntilTheHolderLetsGo,
                            AWaiterIsToldThatTheHolderFinishedWhicheverProcessHeldIt,
                            AWaitEndsAtItsDeadlineAndNotBefore, AWaitThatIsNotWantedAnyMoreEndsSoon,
                            DifferentRequestsDoNotDisturbEachOther, AClaimMayBeReleasedOnAnotherThread,
                            AClaimOutlivesItsPartyObject, AKilledHolderIsSucceededAlsoWhileAForkedChildOfItSleeps,
                            SixtyFourWaitingProcessesAllFinishSoonAfterTheRelease);

}  // namespace kiln::test
