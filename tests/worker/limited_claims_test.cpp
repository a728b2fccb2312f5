// SPDX-License-Identifier: Apache-2.0
#include "worker/limited_claims.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "cache/local_claims.hpp"
#include "conformance/claims_conformance.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {
namespace {

using Outcome = Claims::Outcome;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

struct LimitedParty final : Claims {
  explicit LimitedParty(const std::string& directory) : inner(directory), slots(directory) {}
  AcquireResult acquire(const RequestKey& request, milliseconds wait, const RequestContext& context) override {
    return limited.acquire(request, wait, context);
  }
  LocalClaims inner;
  WorkerSlots slots;
  LimitedClaims limited{inner, slots, 1};
};

struct LimitedParties {
  TemporaryDirectory directory;
  std::unique_ptr<Claims> participant() { return std::make_unique<LimitedParty>(directory.path()); }
  static milliseconds takeover() { return std::chrono::seconds(10); }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Limited, ClaimsConformance, LimitedParties);

RequestKey key(int number) { return {sha256("request " + std::to_string(number))}; }

RequestContext background() {
  RequestContext context;
  context.urgent = Urgency(false);
  return context;
}

/// Claims for two workers, so with three turns. All turns are taken by the constructor.
class LimitedClaimsTest : public ::testing::Test {
 protected:
  LimitedClaimsTest() {
    for (int number = 1; number <= 3; ++number) held_.push_back(acquire(number));
  }

  std::unique_ptr<Claim> acquire(int number, const RequestContext& context = background()) {
    auto acquired = claims_.acquire(key(number), milliseconds(0), context);
    EXPECT_EQ(acquired.outcome, Outcome::Acquired) << acquired.reason;
    return std::move(acquired.claim);
  }
  /// Returns how long `acquire` waits for a turn.
  nanoseconds wait_of(int number, const RequestContext& context = background()) {
    const nanoseconds start = clock_.steady();
    const auto claim = acquire(number, context);
    return clock_.steady() - start;
  }

  TemporaryDirectory directory_;
  LocalClaims inner_{directory_.path()};
  WorkerSlots slots_{directory_.path()};
  ManualClock clock_;  // waits return immediately
  LimitedClaims claims_{inner_, slots_, 2, clock_};
  std::vector<std::unique_ptr<Claim>> held_;
};

constexpr nanoseconds kAtOnce = std::chrono::seconds(5);

TEST_F(LimitedClaimsTest, BackgroundRequestWaitsForTurnOnlySoLong) {
  const nanoseconds waited = wait_of(4);
  EXPECT_GE(waited, LimitedClaims::kMaxTurnWait);
  EXPECT_LT(waited, LimitedClaims::kMaxTurnWait + kAtOnce);
}

TEST_F(LimitedClaimsTest, TurnIsFreeAgainAfterRelease) {
  held_.pop_back();
  EXPECT_LT(wait_of(4), kAtOnce);
  EXPECT_LT(wait_of(5), kAtOnce) << "the claim of 4 is released";
}

TEST_F(LimitedClaimsTest, ProcessesOfHostShareTurns) {
  const auto child_waits = [&] {
    const Forked child([&](const Forked::Side& side) {
      const ManualClock clock;
      const nanoseconds start = clock.steady();
      LimitedClaims claims(inner_, slots_, 2, clock);
      const bool mine = claims.acquire(key(4), milliseconds(0), background()).outcome == Outcome::Acquired;
      const bool waited = clock.steady() - start >= LimitedClaims::kMaxTurnWait;
      side.say(!mine ? "not mine" : waited ? "waited" : "at once");
    });
    return child.line();
  };
  EXPECT_EQ(child_waits(), "waited");
  held_.pop_back();
  EXPECT_EQ(child_waits(), "at once");
}

TEST_F(LimitedClaimsTest, UrgentRequestNeedsNoTurn) {
  RequestContext urgent;
  urgent.urgent = Urgency(true);
  EXPECT_LT(wait_of(4, urgent), kAtOnce);
  EXPECT_LT(wait_of(5, {}), kAtOnce) << "a caller without an engine waits for it";
}

TEST_F(LimitedClaimsTest, RequestThatOtherProcessAwaitsNeedsNoTurn) {
  const Forked child([&](const Forked::Side& side) {
    const WorkerSlots::SlotRequest awaited = slots_.await(key(4).digest);
    side.say("waiting");
    (void)side.receive();
  });
  ASSERT_EQ(child.line(), "waiting");
  EXPECT_LT(wait_of(4), kAtOnce);
}

TEST_F(LimitedClaimsTest, RequestHeldByOtherKeepsNoTurn) {
  LocalClaims others(directory_.path());
  held_.pop_back();
  const auto other = others.acquire(key(9), milliseconds(0), {});
  ASSERT_EQ(other.outcome, Outcome::Acquired);
  EXPECT_EQ(claims_.acquire(key(9), milliseconds(0), background()).outcome, Outcome::TimedOut);
  EXPECT_EQ(claims_.acquire(key(9), milliseconds(20), background()).outcome, Outcome::TimedOut);
  EXPECT_LT(wait_of(4), kAtOnce);
}

/// A clock that calls a function when a thread sleeps.
class CallingClock final : public Clock {
 public:
  explicit CallingClock(std::function<void()> call) : call_(std::move(call)) {}
  nanoseconds wall() const override { return steady(); }
  nanoseconds steady() const override { return now_; }
  void sleep(nanoseconds time) const override {
    now_ += time;
    call_();
  }
  void wait(Condition& /*condition*/, Mutex& mutex, nanoseconds time) const override KILN_REQUIRES(mutex) {
    mutex.unlock();  // the call may notify the condition
    sleep(time);
    mutex.lock();
  }

 private:
  const std::function<void()> call_;
  mutable nanoseconds now_ = std::chrono::seconds(1'000);
};

TEST_F(LimitedClaimsTest, WaitEndsWhenCallerBeginsToWait) {
  RequestContext context = background();
  const CallingClock clock([&] { context.urgent.raise(); });
  LimitedClaims claims(inner_, slots_, 2, clock);
  const nanoseconds start = clock.steady();
  EXPECT_EQ(claims.acquire(key(4), milliseconds(0), context).outcome, Outcome::Acquired);
  EXPECT_LT(clock.steady() - start, kAtOnce);
}

TEST_F(LimitedClaimsTest, CanceledRequestAcquiresNothing) {
  std::stop_source stop;
  const CallingClock clock([&] { stop.request_stop(); });
  LimitedClaims claims(inner_, slots_, 2, clock);
  RequestContext context = background();
  context.stop = stop.get_token();
  const auto acquired = claims.acquire(key(4), milliseconds(0), context);
  EXPECT_EQ(acquired.outcome, Outcome::TimedOut);
  EXPECT_EQ(acquired.claim, nullptr);
  EXPECT_FALSE(acquired.reason.empty());
}

}  // namespace
}  // namespace kiln::test
