// SPDX-License-Identifier: Apache-2.0
// Lookups of background requests in a GuardedStore: their admission, second attempt and refusal.
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "remote/guarded_store.hpp"
#include "support/fakes/scripted_store.hpp"
#include "support/fakes/stepped_clock.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class BackgroundLookupTest : public testing::Test {
 protected:
  BackgroundLookupTest() {
    ServerGuard::Params guard;
    guard.name = "a server";
    guard.probe = [](const Deadline&) { return Status(); };
    guard.background_queue = background_queue_;
    guard.policy = policy_;
    guard.clock = &clock_;
    guard_ = ServerGuard::make(std::move(guard));
    store_ = std::make_unique<GuardedStore>(
        GuardedStore::Params{inner_, guard_, background_queue_, policy_, log_.emitter(), &clock_});
  }
  ~BackgroundLookupTest() override {
    gate_ = true;
    background_queue_->stop();
  }

  ServerTimeBudget background() const { return {policy_.background_budget, Urgency(false), policy_.budget}; }
  bool has(std::uint64_t number, ServerTimeBudget& budget) {
    const auto hit = store_->get(key_number(number), {.server_budget = &budget});
    EXPECT_TRUE(hit.has_value());  // it returns no errors of its own
    return hit && hit->has_value();
  }
  // Looks up a key for a background request of its own.
  bool background_has(std::uint64_t number) {
    ServerTimeBudget budget = background();
    return has(number, budget);
  }
  void publish(std::uint64_t number, double cost_ms) {
    ASSERT_TRUE(inner_->put(key_number(number), artifact_of(key_number(number), 100, cost_ms), {}).has_value());
  }
  // Answers each lookup after this time, with a miss or a published entry.
  void answer_after(nanoseconds took) {
    inner_->lookup = [this, took](const RequestContext&) {
      clock_.advance(took);
      return Status();
    };
  }
  // Empties the account with misses that take 400 ms each, for as long as the server is asked.
  void empty_account() {
    answer_after(milliseconds(400));
    for (std::uint64_t number = 1000; number < 1100 && store_->counts().skipped == 0; ++number)
      EXPECT_FALSE(background_has(number));
    ASSERT_GT(store_->counts().skipped, 0u);
    EXPECT_GE(store_->counts().requests, 10u);
    EXPECT_LE(store_->counts().requests, 14u);  // passing time earns a tenth
  }
  // A request whose lookup waits until the gate is open.
  std::thread first_at_the_gate() {
    inner_->lookup = [this](const RequestContext&) {
      EXPECT_TRUE(eventually([&] { return gate_.load(); }));
      return Status();
    };
    std::thread first([this] { EXPECT_FALSE(background_has(1)); });
    EXPECT_TRUE(eventually([&] { return inner_->lookups == 1; }));
    return first;
  }

  const FleetPolicy policy_;
  SteppedClock clock_;
  EventLog log_;
  std::atomic<bool> gate_{false};
  std::shared_ptr<ScriptedStore> inner_ = std::make_shared<ScriptedStore>();
  std::shared_ptr<BackgroundQueue> background_queue_ = std::make_shared<BackgroundQueue>(policy_, clock_);
  std::shared_ptr<ServerGuard> guard_;
  std::unique_ptr<GuardedStore> store_;
};

TEST_F(BackgroundLookupTest, SecondRequestWaitsForTheFirstAnswer) {
  std::thread first = first_at_the_gate();
  std::thread second([&] { EXPECT_FALSE(background_has(2)); });
  EXPECT_TRUE(clock_.waiting(1));
  EXPECT_EQ(inner_->lookups, 1);
  gate_ = true;
  first.join();
  second.join();
  EXPECT_EQ(inner_->lookups, 2);
}

TEST_F(BackgroundLookupTest, WaitForTheFirstAnswerIsBounded) {
  std::thread first = first_at_the_gate();
  std::thread second([&] { EXPECT_FALSE(background_has(2)); });
  EXPECT_TRUE(clock_.waiting(1));
  clock_.advance(policy_.query_timeout);
  EXPECT_TRUE(eventually([&] { return inner_->lookups == 2; }));
  gate_ = true;
  first.join();
  second.join();
}

// With the system's clock: a stepped clock wakes every waiter.
TEST_F(BackgroundLookupTest, WaitForTheFirstAnswerEndsWhenCallerWaits) {
  FleetPolicy policy;
  policy.query_timeout = policy.background_budget = std::chrono::hours(1);
  const auto queue = std::make_shared<BackgroundQueue>(policy);
  ServerGuard::Params guard;
  guard.background_queue = queue;
  guard.policy = policy;
  store_ = std::make_unique<GuardedStore>(
      GuardedStore::Params{inner_, ServerGuard::make(std::move(guard)), queue, policy, log_.emitter()});
  std::thread first = first_at_the_gate();
  Urgency urgent(false);
  std::thread second([&] {
    ServerTimeBudget budget(policy.background_budget, urgent, policy.budget);
    EXPECT_FALSE(has(2, budget));
  });
  std::this_thread::sleep_for(milliseconds(50));  // it most likely waits now
  urgent.raise();
  EXPECT_TRUE(eventually([&] { return inner_->lookups == 2; }));
  gate_ = true;
  first.join();
  second.join();
}

// The query itself: a caller waits at most its own budget for it.
TEST_F(BackgroundLookupTest, QueryEndsWhenCallerWaits) {
  Urgency urgent(false);
  std::atomic<int> polls{0};
  inner_->lookup = [&](const RequestContext& context) {
    const Deadline deadline = context.server_deadline(clock_, seconds(60));
    while (deadline.remaining() > nanoseconds(0)) {
      if (++polls == 3) urgent.raise();
      clock_.advance(milliseconds(10));
      if (deadline.interrupt() != nullptr) (void)deadline.interrupt()->poll();
    }
    return Status(make_error(Code::Cancelled, "interrupted"));
  };
  const nanoseconds start = clock_.steady();
  ServerTimeBudget budget(policy_.background_budget, urgent, policy_.budget);
  EXPECT_FALSE(has(1, budget));
  EXPECT_LE(clock_.steady() - start, milliseconds(20) + policy_.budget);
  EXPECT_EQ(inner_->lookups, 1);
  EXPECT_EQ(guard_->time_budget(&budget), nanoseconds(0)) << "the caller has paid its timeout";
  EXPECT_TRUE(guard_->is_slow());
}

TEST_F(BackgroundLookupTest, CallerDoesNotWaitForTheFirstAnswer) {
  std::thread first = first_at_the_gate();
  std::thread second([&] {
    ServerTimeBudget waited(policy_.budget);
    EXPECT_FALSE(has(2, waited));
  });
  EXPECT_TRUE(eventually([&] { return inner_->lookups == 2; }));
  gate_ = true;
  first.join();
  second.join();
}

TEST_F(BackgroundLookupTest, RepeatsATimedOutLookupOnceWithALongerTimeout) {
  publish(1, 100);
  std::vector<nanoseconds> timeouts;
  inner_->lookup = [&](const RequestContext& context) -> Status {
    timeouts.push_back(context.server_budget->remaining());
    if (timeouts.size() > 1) return {};
    clock_.advance(timeouts.back());
    return make_error(Code::TimedOut, "no answer");
  };
  ServerTimeBudget budget = background();
  EXPECT_TRUE(has(1, budget));
  EXPECT_FALSE(budget.is_refused());
  ASSERT_EQ(timeouts.size(), 2u);
  EXPECT_EQ(timeouts[0], policy_.background_timeout(false));
  EXPECT_EQ(timeouts[1], policy_.background_timeout(true));
}

TEST_F(BackgroundLookupTest, RequestIsRefusedAfterTheSecondTimeout) {
  inner_->lookup = [&](const RequestContext& context) -> Status {
    clock_.advance(context.server_budget->remaining());
    return make_error(Code::TimedOut, "no answer");
  };
  ServerTimeBudget budget = background();
  EXPECT_FALSE(has(1, budget));
  EXPECT_EQ(inner_->lookups, 2);
  EXPECT_TRUE(budget.is_refused());
  EXPECT_EQ(budget.remaining(), nanoseconds(0));
  ASSERT_TRUE(store_->put(key_number(1), artifact_of(key_number(1), 100), {.server_budget = &budget}).has_value());
  EXPECT_EQ(inner_->writes, 0);
  ASSERT_EQ(log_.count(Event::Kind::UploadDropped), 1u);
  EXPECT_EQ(log_.of(Event::Kind::UploadDropped)[0].message, "the server is overloaded");
}

TEST_F(BackgroundLookupTest, OpenCircuitRefusesTheRequest) {
  ServerGuard::Call(*guard_, nullptr, milliseconds(95)).failed(make_error(Code::Unavailable, "gone"));
  ServerTimeBudget budget = background();
  EXPECT_FALSE(has(1, budget));
  EXPECT_TRUE(budget.is_refused());
  EXPECT_EQ(inner_->lookups, 0);
}

TEST_F(BackgroundLookupTest, EmptyAccountRefusesRequestsUntilTimeHasPassed) {
  empty_account();
  const int before = inner_->lookups;
  ServerTimeBudget budget = background();
  EXPECT_FALSE(has(1, budget));
  EXPECT_TRUE(budget.is_refused());
  EXPECT_EQ(inner_->lookups, before);
  ServerTimeBudget waited(policy_.budget);
  EXPECT_FALSE(has(2, waited));  // a caller has its own limit
  EXPECT_EQ(inner_->lookups, before + 1);
  clock_.advance(seconds(60));
  EXPECT_FALSE(background_has(3));
  EXPECT_EQ(inner_->lookups, before + 2);
}

TEST_F(BackgroundLookupTest, HitsKeepASlowServerInUse) {
  answer_after(milliseconds(400));
  for (std::uint64_t number = 1; number <= 100; ++number) {
    publish(number, 2'000);
    EXPECT_TRUE(background_has(number)) << number;
  }
}

TEST_F(BackgroundLookupTest, AdmittedRequestIsNotRefusedLater) {
  ServerTimeBudget admitted = background();
  EXPECT_FALSE(has(1, admitted));
  empty_account();
  const int before = inner_->lookups;
  EXPECT_FALSE(has(2, admitted));
  EXPECT_EQ(inner_->lookups, before + 1);
}

TEST_F(BackgroundLookupTest, RecoveredServerIsAskedAgain) {
  ServerTimeBudget admitted = background();
  EXPECT_FALSE(has(1, admitted));
  empty_account();
  for (std::uint64_t number = 2; number <= 5; ++number) EXPECT_FALSE(has(number, admitted));  // below zero
  answer_after(nanoseconds(0));
  ServerGuard::Call(*guard_, nullptr, milliseconds(95)).failed(make_error(Code::Unavailable, "gone"));
  const int before = inner_->lookups;
  clock_.advance(policy_.early_probe_interval);
  EXPECT_FALSE(background_has(6));
  EXPECT_EQ(inner_->lookups, before + 1);
}

}  // namespace
}  // namespace kiln::test
