// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "cache/claims.hpp"
#include "support/processes/forked.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {

/// Requirements of every `Claims` implementation. `Parties` supplies:
///   std::unique_ptr<Claims> participant();        another party of the same claims; also called in forked children
///   std::chrono::milliseconds takeover();   maximum time from the death of a holder to the next acquire
/// Instantiate: INSTANTIATE_TYPED_TEST_SUITE_P(Local, ClaimsConformance, LocalParties);
template <class Parties>
class ClaimsConformance : public ::testing::Test {
 protected:
  using Milliseconds = std::chrono::milliseconds;

  static RequestKey key(int number) { return {sha256("request " + std::to_string(number))}; }

  /// Starts a process that prints "mine" once it holds the claim, and releases it when it receives a line.
  Forked holder(int number, bool with_sleeping_child = false) {
    Forked child([this, number, with_sleeping_child](const Forked::Side& side) {
      const auto claims = parties_.participant();
      auto answer = claims->acquire(key(number), Milliseconds(0), {});
      if (with_sleeping_child && fork() == 0) {
        // The child inherits everything and outlives its parent, until the test closes the pipe.
        answer.claim.release();
        while (side.receive()) {
        }
        _exit(0);
      }
      side.say(answer.outcome == Claims::Outcome::Acquired ? "mine" : "not mine: " + answer.reason);
      (void)side.receive();
      answer.claim.reset();
      side.say("released");
      (void)side.receive();
    });
    EXPECT_EQ(child.line(), "mine");
    return child;
  }

  /// Acquires repeatedly until the claim is acquired, as a caller with a cache miss does. Returns the time that took.
  static Milliseconds until_mine(Claims& claims, const RequestKey& request, Milliseconds timeout) {
    const auto start = std::chrono::steady_clock::now();
    const auto passed = [&] {
      return std::chrono::duration_cast<Milliseconds>(std::chrono::steady_clock::now() - start);
    };
    while (passed() < timeout && claims.acquire(request, timeout - passed(), {}).outcome != Claims::Outcome::Acquired) {
    }
    return passed();
  }

  Parties parties_;
};

TYPED_TEST_SUITE_P(ClaimsConformance);

TYPED_TEST_P(ClaimsConformance, OnlyOnePartyAcquiresRequest) {
  using Outcome = Claims::Outcome;
  const auto first = this->parties_.participant();
  const auto second = this->parties_.participant();
  auto mine = first->acquire(this->key(1), std::chrono::milliseconds(0), {});
  ASSERT_EQ(mine.outcome, Outcome::Acquired) << mine.reason;
  ASSERT_NE(mine.claim, nullptr);
  EXPECT_EQ(second->acquire(this->key(1), std::chrono::milliseconds(0), {}).outcome, Outcome::TimedOut);
  EXPECT_EQ(first->acquire(this->key(1), std::chrono::milliseconds(0), {}).outcome, Outcome::TimedOut);
  mine.claim.reset();
  EXPECT_EQ(second->acquire(this->key(1), std::chrono::milliseconds(0), {}).outcome, Outcome::Acquired);
}

TYPED_TEST_P(ClaimsConformance, AnotherProcessWaitsUntilHolderReleases) {
  using Outcome = Claims::Outcome;
  Forked holder = this->holder(1);
  const auto here = this->parties_.participant();
  const auto answer = here->acquire(this->key(1), std::chrono::milliseconds(0), {});
  EXPECT_EQ(answer.outcome, Outcome::TimedOut);
  EXPECT_EQ(answer.claim, nullptr);
  EXPECT_FALSE(answer.reason.empty());
  holder.say("release");
  ASSERT_EQ(holder.line(), "released");
  EXPECT_EQ(here->acquire(this->key(1), std::chrono::milliseconds(0), {}).outcome, Outcome::Acquired);
}

TYPED_TEST_P(ClaimsConformance, WaiterLearnsThatHolderInAnyProcessReleased) {
  using Outcome = Claims::Outcome;
  const auto here = this->parties_.participant();
  // On a busy machine the claim may be free before the wait begins; then again with more time.
  const auto outcome_of_wait = [](Claims& claims, const RequestKey& request, std::chrono::milliseconds delay,
                                  const std::function<void()>& release) {
    std::thread later([&] {
      std::this_thread::sleep_for(delay);
      release();
    });
    const auto answer = claims.acquire(request, kHangTimeout, {});
    later.join();
    return answer.outcome;
  };
  Outcome from_process = Outcome::Acquired;
  Outcome from_thread = Outcome::Acquired;
  const auto other = this->parties_.participant();
  for (auto delay = std::chrono::milliseconds(250); delay < std::chrono::seconds(20); delay *= 4) {
    if (from_process == Outcome::Acquired) {
      Forked holder = this->holder(1);
      from_process = outcome_of_wait(*here, this->key(1), delay, [&] { holder.say("release"); });
    }
    if (from_thread == Outcome::Acquired) {
      auto mine = here->acquire(this->key(2), std::chrono::milliseconds(0), {});
      ASSERT_EQ(mine.outcome, Outcome::Acquired);
      from_thread = outcome_of_wait(*other, this->key(2), delay, [&] { mine.claim.reset(); });
    }
  }
  EXPECT_EQ(from_process, Outcome::ReleasedByOther);
  EXPECT_EQ(from_thread, Outcome::ReleasedByOther);
}

TYPED_TEST_P(ClaimsConformance, WaitEndsAtDeadlineAndNotBefore) {
  using Outcome = Claims::Outcome;
  Forked holder = this->holder(1);
  const auto here = this->parties_.participant();
  const auto mine = here->acquire(this->key(2), std::chrono::milliseconds(0), {});
  for (const int number : {1, 2}) {
    std::chrono::nanoseconds shortest = std::chrono::hours(1);
    for (int i = 0; i < 3; ++i) {
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(here->acquire(this->key(number), std::chrono::milliseconds(120), {}).outcome, Outcome::TimedOut);
      const auto passed = std::chrono::steady_clock::now() - start;
      EXPECT_GE(passed, std::chrono::milliseconds(120));
      shortest = std::min<std::chrono::nanoseconds>(shortest, passed);
    }
    EXPECT_LT(shortest, std::chrono::milliseconds(900)) << "a busy machine delays some of three waits, not all";
  }
}

TYPED_TEST_P(ClaimsConformance, CanceledWaitEndsSoon) {
  Forked holder = this->holder(1);
  const auto here = this->parties_.participant();
  std::stop_source wanted;
  std::thread later([&wanted] {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    wanted.request_stop();
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(here->acquire(this->key(1), std::chrono::seconds(30), {.stop = wanted.get_token()}).outcome,
            Claims::Outcome::TimedOut);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  later.join();
}

TYPED_TEST_P(ClaimsConformance, RequestsAreIndependent) {
  using Outcome = Claims::Outcome;
  Forked holder = this->holder(1);
  const auto here = this->parties_.participant();
  std::vector<Claims::AcquireResult> held;
  for (int number = 2; number < 50; ++number) {
    held.push_back(here->acquire(this->key(number), std::chrono::milliseconds(0), {}));
    ASSERT_EQ(held.back().outcome, Outcome::Acquired) << number;
  }
  held.erase(held.begin());
  Forked looker([this](const Forked::Side& side) {
    const auto there = this->parties_.participant();
    const auto outcome = [&](int number) { return there->acquire(this->key(number), {}, {}).outcome; };
    side.say(outcome(2) == Outcome::Acquired && outcome(3) == Outcome::TimedOut && outcome(1) == Outcome::TimedOut
                 ? "ok"
                 : "failed");
  });
  EXPECT_EQ(looker.line(), "ok");
}

TYPED_TEST_P(ClaimsConformance, ClaimCanBeReleasedOnAnotherThread) {
  const auto here = this->parties_.participant();
  auto mine = here->acquire(this->key(1), std::chrono::milliseconds(0), {});
  std::thread([claim = std::move(mine.claim)]() mutable { claim.reset(); }).join();
  EXPECT_EQ(here->acquire(this->key(1), std::chrono::milliseconds(0), {}).outcome, Claims::Outcome::Acquired);
}

TYPED_TEST_P(ClaimsConformance, ClaimOutlivesPartyObject) {
  auto first = this->parties_.participant();
  auto mine = first->acquire(this->key(1), std::chrono::milliseconds(0), {});
  first.reset();
  const auto second = this->parties_.participant();
  EXPECT_EQ(second->acquire(this->key(1), std::chrono::milliseconds(0), {}).outcome, Claims::Outcome::TimedOut);
  mine.claim.reset();
  EXPECT_EQ(second->acquire(this->key(1), std::chrono::milliseconds(0), {}).outcome, Claims::Outcome::Acquired);
}

TYPED_TEST_P(ClaimsConformance, ClaimOfKilledHolderIsAcquiredWhileItsForkedChildLives) {
  const auto here = this->parties_.participant();
  int number = 0;
  for (const bool with_sleeping_child : {false, true}) {
    Forked holder = this->holder(++number, with_sleeping_child);
    ASSERT_EQ(here->acquire(this->key(number), std::chrono::milliseconds(0), {}).outcome, Claims::Outcome::TimedOut);
    holder.kill_now();
    EXPECT_LT(this->until_mine(*here, this->key(number), std::chrono::seconds(20)), this->parties_.takeover());
  }
}

TYPED_TEST_P(ClaimsConformance, SixtyFourWaitersFinishSoonAfterRelease) {
  Forked holder = this->holder(1);
  std::vector<std::unique_ptr<Forked>> waiting;
  for (int i = 0; i < 64; ++i) {
    waiting.push_back(std::make_unique<Forked>([this](const Forked::Side& side) {
      const auto there = this->parties_.participant();
      side.say("ready");
      const auto answer = there->acquire(this->key(1), kHangTimeout, {});
      // A process that started late may find the claim free and then holds it briefly.
      const bool good =
          answer.outcome == Claims::Outcome::ReleasedByOther || answer.outcome == Claims::Outcome::Acquired;
      side.say(good ? "done" : "failed: " + answer.reason);
    }));
  }
  for (const auto& child : waiting) ASSERT_EQ(child->line(), "ready");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto start = std::chrono::steady_clock::now();
  holder.say("release");
  for (const auto& child : waiting) EXPECT_EQ(child->line(), "done");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TYPED_TEST_P(ClaimsConformance, WaitForStoppedHolderEndsEarly) {
  Forked holder = this->holder(1);
  ASSERT_EQ(::kill(holder.id(), SIGSTOP), 0);
  const auto here = this->parties_.participant();
  const auto start = std::chrono::steady_clock::now();
  const auto answer = here->acquire(this->key(1), std::chrono::seconds(60), {});
  const auto passed = std::chrono::steady_clock::now() - start;
  std::printf("figure: a stopped holder is waited for %.1f s of 60\n", std::chrono::duration<double>(passed).count());
  EXPECT_TRUE(answer.outcome == Claims::Outcome::TimedOut || answer.outcome == Claims::Outcome::ReleasedByOther)
      << answer.reason;
  if (answer.outcome == Claims::Outcome::TimedOut) {
    EXPECT_NE(answer.reason.find("is stopped"), std::string::npos) << answer.reason;
  }
  EXPECT_LT(passed, std::chrono::seconds(20));
}

TYPED_TEST_P(ClaimsConformance, TakeoverOfHeldRequestGoesToOneParty) {
  using Outcome = Claims::Outcome;
  Forked holder = this->holder(1);
  const auto first = this->parties_.participant();
  const auto second = this->parties_.participant();
  for (int level = 1; level <= kMaxTakeovers; ++level) {
    const RequestKey takeover = takeover_of(this->key(1), level);
    auto mine = first->acquire(takeover, std::chrono::milliseconds(0), {});
    ASSERT_EQ(mine.outcome, Outcome::Acquired) << level << ": " << mine.reason;
    EXPECT_EQ(second->acquire(takeover, std::chrono::milliseconds(0), {}).outcome, Outcome::TimedOut) << level;
    mine.claim.reset();
    EXPECT_EQ(second->acquire(takeover, std::chrono::milliseconds(0), {}).outcome, Outcome::Acquired) << level;
  }
  EXPECT_EQ(takeover_of(this->key(1), 0), this->key(1));
}

REGISTER_TYPED_TEST_SUITE_P(ClaimsConformance, OnlyOnePartyAcquiresRequest, AnotherProcessWaitsUntilHolderReleases,
                            WaiterLearnsThatHolderInAnyProcessReleased, WaitEndsAtDeadlineAndNotBefore,
                            CanceledWaitEndsSoon, RequestsAreIndependent, ClaimCanBeReleasedOnAnotherThread,
                            ClaimOutlivesPartyObject, ClaimOfKilledHolderIsAcquiredWhileItsForkedChildLives,
                            SixtyFourWaitersFinishSoonAfterRelease, WaitForStoppedHolderEndsEarly,
                            TakeoverOfHeldRequestGoesToOneParty);

}  // namespace kiln::test
