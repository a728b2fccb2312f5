// SPDX-License-Identifier: Apache-2.0
#include "remote/guarded_store.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "base/error.hpp"
#include "support/fakes/scripted_store.hpp"
#include "support/fakes/stepped_clock.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/process_info.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// A guarded store with its queue and guard, and a manually advanced clock.
class GuardedStoreTest : public testing::Test {
 protected:
  void SetUp() override { build(); }
  void TearDown() override {
    gate_ = true;
    background_queue_->stop();
  }
  void build() {
    background_queue_ = std::make_shared<BackgroundQueue>(policy_, clock_);
    ServerGuard::Params guard;
    guard.name = "a server";
    guard.probe = [this](const Deadline&) -> Status {
      if (answers_) return {};
      return make_error(Code::Unavailable, "gone");
    };
    guard.background_queue = background_queue_;
    guard.policy = policy_;
    guard.emitter = log_.emitter();
    guard.clock = &clock_;
    guard_ = ServerGuard::make(std::move(guard));
    store_ = std::make_unique<GuardedStore>(
        GuardedStore::Params{inner_, guard_, background_queue_, policy_, log_.emitter(), &clock_});
  }

  bool has(std::uint64_t number, ServerTimeBudget* budget = nullptr) {
    const auto hit = store_->get(key_number(number), {.server_budget = budget});
    EXPECT_TRUE(hit.has_value());  // it returns no errors of its own
    return hit && hit->has_value();
  }
  bool put(std::uint64_t number, std::size_t size = 100) {
    return store_->put(key_number(number), artifact_of(key_number(number), size), {}).has_value();
  }
  bool drained() { return background_queue_->drain(seconds(20)); }
  void give_up() {
    ServerGuard::Call(*guard_, nullptr, std::chrono::milliseconds(95)).failed(make_error(Code::Unavailable, "gone"));
  }
  // Calls of the inner store that wait until the gate is open or the server's time budget is used up.
  ScriptedStore::Step at_the_gate() {
    return [this](const RequestContext& context) -> Status {
      EXPECT_TRUE(eventually([&] { return gate_.load() || context.is_cancelled(); })) << "the call was not canceled";
      if (gate_) return {};
      return make_error(Code::Cancelled, "the caller has canceled");
    };
  }

  FleetPolicy policy_;
  SteppedClock clock_;
  EventLog log_;
  std::atomic<bool> answers_{false};
  std::atomic<bool> gate_{false};
  std::shared_ptr<ScriptedStore> inner_ = std::make_shared<ScriptedStore>();
  std::shared_ptr<BackgroundQueue> background_queue_;
  std::shared_ptr<ServerGuard> guard_;
  std::unique_ptr<GuardedStore> store_;
};

TEST_F(GuardedStoreTest, ServesServerEntries) {
  ASSERT_TRUE(inner_->put(key_number(1), artifact_of(key_number(1), 100), {}).has_value());
  EXPECT_TRUE(has(1));
  EXPECT_TRUE(has(1));
  EXPECT_EQ(store_->counts().requests, 2u);
}

TEST_F(GuardedStoreTest, RecentMissIsNotRequestedAgain) {
  EXPECT_FALSE(has(1));
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(store_->dependency_sets(request_number(1), Store::kMaxDependencySets, {}).value().empty());
  EXPECT_TRUE(store_->dependency_sets(request_number(1), Store::kMaxDependencySets, {}).value().empty());
  EXPECT_EQ(inner_->lookups, 2);
  EXPECT_EQ(store_->counts().deduplicated, 2u);
  clock_.advance(policy_.negative_ttl * 2);
  EXPECT_FALSE(has(1));
  EXPECT_EQ(inner_->lookups, 3);
}

TEST_F(GuardedStoreTest, FailureIsNotCachedAsMiss) {
  inner_->lookup = [](const RequestContext&) { return make_error(Code::Unsupported, "cannot do that"); };
  EXPECT_FALSE(has(1));
  EXPECT_FALSE(has(1));
  EXPECT_EQ(inner_->lookups, 2);
}

TEST_F(GuardedStoreTest, BypassIgnoresNegativeCache) {
  EXPECT_FALSE(has(1));
  ASSERT_TRUE(inner_->put(key_number(1), artifact_of(key_number(1), 100), {}).has_value());
  EXPECT_FALSE(has(1));
  ServerTimeBudget budget(policy_.budget);
  budget.bypass_negative_cache();
  EXPECT_TRUE(has(1, &budget));
}

TEST_F(GuardedStoreTest, PutInvalidatesNegativeEntry) {
  EXPECT_FALSE(has(1));
  ASSERT_TRUE(store_->dependency_sets(request_number(1), Store::kMaxDependencySets, {}).value().empty());
  ASSERT_TRUE(put(1));
  ASSERT_TRUE(store_->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  ASSERT_TRUE(drained());
  EXPECT_TRUE(has(1));
  EXPECT_EQ(store_->dependency_sets(request_number(1), Store::kMaxDependencySets, {}).value().size(), 1u);
}

TEST_F(GuardedStoreTest, OnlyFirstFailureCostsTime) {
  inner_->lookup = [&](const RequestContext& context) -> Status {
    clock_.advance(context.server_budget->capped(seconds(10)));
    return make_error(Code::TimedOut, "no answer");
  };
  ServerTimeBudget budget(policy_.budget);
  const nanoseconds start = clock_.steady();
  EXPECT_FALSE(has(1, &budget));
  const nanoseconds paid = clock_.steady() - start;
  EXPECT_LE(paid, policy_.budget);
  EXPECT_EQ(budget.remaining(), policy_.budget - paid);
  ServerTimeBudget next(policy_.budget);
  for (std::uint64_t number = 1; number < 100; ++number) EXPECT_FALSE(has(number, &next));
  EXPECT_EQ(clock_.steady() - start, paid);
  EXPECT_EQ(inner_->lookups, 1);
  EXPECT_EQ(store_->counts().skipped, 99u);
}

TEST_F(GuardedStoreTest, BudgetAppliesWithoutAllowance) {
  nanoseconds reported{0};
  inner_->lookup = [&](const RequestContext& context) -> Status {
    reported = context.server_budget->capped(seconds(10));
    return {};
  };
  EXPECT_FALSE(has(1));
  EXPECT_GT(reported, nanoseconds(0));
  EXPECT_LE(reported, policy_.query_timeout);
}

TEST_F(GuardedStoreTest, NoRequestWithoutTimeLeft) {
  ServerTimeBudget none(nanoseconds(0));
  EXPECT_FALSE(has(1, &none));
  EXPECT_TRUE(
      store_->dependency_sets(request_number(1), Store::kMaxDependencySets, {.server_budget = &none}).value().empty());
  EXPECT_EQ(inner_->lookups, 0);
  EXPECT_TRUE(guard_->is_available());
}

TEST_F(GuardedStoreTest, RecoveredServerIsUsedAgain) {
  ASSERT_TRUE(inner_->put(key_number(1), artifact_of(key_number(1), 100), {}).has_value());
  give_up();
  EXPECT_FALSE(has(1));
  answers_ = true;
  EXPECT_TRUE(eventually([&] {
    clock_.advance(milliseconds(100));
    return has(1);
  }));
}

TEST_F(GuardedStoreTest, RejectionsAreMissesAndManyOpenCircuit) {
  inner_->lookup = [](const RequestContext&) { return make_error(Code::Corrupt, "not signed"); };
  for (std::uint64_t number = 1; number < policy_.max_consecutive_rejections; ++number) {
    EXPECT_FALSE(has(number));
    EXPECT_FALSE(has(number));  // from the negative cache
  }
  EXPECT_EQ(inner_->lookups, static_cast<int>(policy_.max_consecutive_rejections) - 1);
  EXPECT_TRUE(guard_->is_available());
  EXPECT_FALSE(has(1000));
  EXPECT_FALSE(guard_->is_available());
}

TEST_F(GuardedStoreTest, ConcurrentLookupsOfKeyShareOneRequest) {
  ASSERT_TRUE(inner_->put(key_number(1), artifact_of(key_number(1), 100), {}).has_value());
  inner_->lookup = at_the_gate();
  std::atomic<int> hits{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { hits += has(1) ? 1 : 0; });
  EXPECT_TRUE(eventually([&] { return store_->counts().deduplicated == 7; }));
  EXPECT_EQ(inner_->lookups, 1);
  gate_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hits, 8);
  EXPECT_EQ(inner_->lookups, 1);
}

TEST_F(GuardedStoreTest, ConcurrentDependencySetLookupsShareOneRequest) {
  for (const int number : {1, 2, 3})
    ASSERT_TRUE(inner_->add_dependency_set(request_number(1), dependency_set_number(number), {}).has_value());
  inner_->lookup = at_the_gate();
  std::vector<std::size_t> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = store_->dependency_sets(request_number(1), i, {}).value().size(); });
  }
  EXPECT_TRUE(eventually([&] { return store_->counts().deduplicated == 3; }));
  gate_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(inner_->lookups, 1);
}

TEST_F(GuardedStoreTest, WaitForSharedLookupRespectsOwnBudget) {
  inner_->lookup = at_the_gate();
  std::thread first([&] { EXPECT_FALSE(has(1)); });
  ASSERT_TRUE(eventually([&] { return inner_->lookups == 1; }));
  std::atomic<bool> second_done{false};
  std::thread second([&] {
    ServerTimeBudget budget(milliseconds(30));
    EXPECT_FALSE(has(1, &budget));
    EXPECT_LT(budget.remaining(), milliseconds(30));
    second_done = true;
  });
  ASSERT_TRUE(clock_.waiting(1));
  EXPECT_FALSE(second_done);
  clock_.advance(milliseconds(30));
  second.join();
  gate_ = true;
  first.join();
  EXPECT_EQ(inner_->lookups, 1);
}

TEST_F(GuardedStoreTest, LookupWhoseLeaderIsCanceledIsSentAgain) {
  ASSERT_TRUE(inner_->put(key_number(1), artifact_of(key_number(1), 100), {}).has_value());
  inner_->lookup = at_the_gate();
  std::stop_source stop;
  std::thread leader([&] {
    const auto hit = store_->get(key_number(1), {.stop = stop.get_token()});
    EXPECT_TRUE(hit.has_value() && !hit->has_value());
  });
  ASSERT_TRUE(eventually([&] { return inner_->lookups == 1; }));
  std::thread joined([&] { EXPECT_TRUE(has(1)); });
  EXPECT_TRUE(eventually([&] { return store_->counts().deduplicated == 1; }));
  stop.request_stop();
  leader.join();
  EXPECT_TRUE(eventually([&] { return inner_->lookups == 2; }));
  gate_ = true;
  joined.join();
  EXPECT_TRUE(guard_->is_available());
}

TEST_F(GuardedStoreTest, BypassDoesNotJoinOlderLookup) {
  inner_->lookup = at_the_gate();
  std::thread first([&] { (void)has(1); });
  ASSERT_TRUE(eventually([&] { return inner_->lookups == 1; }));
  std::thread second([&] {
    ServerTimeBudget budget(policy_.budget);
    budget.bypass_negative_cache();
    (void)has(1, &budget);
  });
  EXPECT_TRUE(eventually([&] { return inner_->lookups == 2; }));
  gate_ = true;
  first.join();
  second.join();
}

TEST_F(GuardedStoreTest, PutReturnsBeforeUploadWhichIsReported) {
  inner_->write = at_the_gate();
  ASSERT_TRUE(put(1, 5'000));
  ASSERT_TRUE(store_->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  gate_ = true;
  ASSERT_TRUE(drained());
  const auto reported = log_.of(Event::Kind::Uploaded);
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported[0].key, key_number(1).hex());
  EXPECT_EQ(reported[0].bytes, 5'000u);
  EXPECT_EQ(reported[0].unit, "unit of a test");
  EXPECT_EQ(store_->counts().uploaded, 2u);
  EXPECT_EQ(store_->counts().dropped, 0u);
}

TEST_F(GuardedStoreTest, UploadCanTakeLongerThanLookup) {
  nanoseconds reported{0};
  inner_->write = [&](const RequestContext& context) -> Status {
    reported = context.server_budget->capped(std::chrono::hours(1));
    return {};
  };
  ASSERT_TRUE(put(1));
  ASSERT_TRUE(drained());
  EXPECT_EQ(reported, policy_.upload_timeout);
}

TEST_F(GuardedStoreTest, FullQueueDropsUploadWithoutPutError) {
  background_queue_->stop();
  policy_.max_pending_uploads = 2;
  build();
  inner_->write = at_the_gate();
  for (std::uint64_t number = 1; number <= 5; ++number) EXPECT_TRUE(put(number));
  gate_ = true;
  ASSERT_TRUE(drained());
  const auto reported = log_.of(Event::Kind::UploadDropped);
  ASSERT_EQ(reported.size(), 3u);
  EXPECT_EQ(reported[0].key, key_number(3).hex());
  EXPECT_EQ(reported[0].message, "the upload queue is full");
  EXPECT_EQ(store_->counts().uploaded, 2u);
  EXPECT_EQ(store_->counts().dropped, 3u);
}

TEST_F(GuardedStoreTest, UploadsAreDroppedWhileCircuitIsOpen) {
  give_up();
  EXPECT_TRUE(put(1));
  EXPECT_TRUE(drained());
  EXPECT_EQ(inner_->writes, 0);
  ASSERT_EQ(log_.count(Event::Kind::UploadDropped), 1u);
  EXPECT_EQ(log_.of(Event::Kind::UploadDropped)[0].message, "the server is unavailable");
}

TEST_F(GuardedStoreTest, OpenCircuitDropsQueuedAndCancelsRunningUploads) {
  inner_->write = at_the_gate();
  for (std::uint64_t number = 1; number <= 10; ++number) ASSERT_TRUE(put(number));
  ASSERT_TRUE(eventually([&] { return inner_->writes == 1; }));
  give_up();
  ASSERT_TRUE(drained());  // with a stopped clock
  EXPECT_EQ(inner_->writes, 1);
  EXPECT_EQ(store_->counts().dropped, 10u);
}

TEST_F(GuardedStoreTest, FailedUploadOpensCircuitButDeniedDoesNot) {
  inner_->write = [](const RequestContext&) { return make_error(Code::Denied, "read only"); };
  ASSERT_TRUE(put(1));
  ASSERT_TRUE(drained());
  EXPECT_TRUE(guard_->is_available());
  ASSERT_EQ(log_.count(Event::Kind::UploadDropped), 1u);
  EXPECT_EQ(log_.of(Event::Kind::UploadDropped)[0].message, "read only");
  inner_->write = [](const RequestContext&) { return make_error(Code::Unavailable, "the disk is full"); };
  ASSERT_TRUE(put(2));
  ASSERT_TRUE(drained());
  EXPECT_FALSE(guard_->is_available());
  EXPECT_EQ(store_->counts().dropped, 2u);
}

TEST_F(GuardedStoreTest, SessionEndDropsAndReportsPendingUploads) {
  background_queue_->stop();
  policy_.drain_timeout = nanoseconds(0);
  build();
  inner_->write = at_the_gate();
  for (std::uint64_t number = 1; number <= 3; ++number) ASSERT_TRUE(put(number));
  ASSERT_TRUE(eventually([&] { return inner_->writes == 1; }));
  background_queue_->stop();
  EXPECT_EQ(store_->counts().dropped, 3u);
  ASSERT_EQ(log_.count(Event::Kind::UploadDropped), 3u);
  EXPECT_EQ(inner_->writes, 1);
}

TEST_F(GuardedStoreTest, ReadOnlyHostUploadsNothing) {
  inner_->may_write = false;
  EXPECT_FALSE(store_->is_writable());
  EXPECT_FALSE(put(1));
  EXPECT_FALSE(store_->add_dependency_set(request_number(1), dependency_set_number(1), {}).has_value());
  EXPECT_EQ(log_.count(Event::Kind::UploadDropped), 0u);
}

TEST_F(GuardedStoreTest, UploadsOutliveStore) {
  inner_->write = at_the_gate();
  ASSERT_TRUE(put(1));
  store_.reset();
  gate_ = true;
  ASSERT_TRUE(drained());
  EXPECT_EQ(log_.count(Event::Kind::Uploaded), 1u);
}

TEST_F(GuardedStoreTest, ThreadsAndMemoryAreBounded) {
  background_queue_->stop();
  policy_.max_pending_uploads = 10;
  policy_.max_negative_entries = 10;
  build();
  for (std::uint64_t number = 0; number < 100; ++number) EXPECT_FALSE(has(number));
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 0; }));  // requests run on the caller's thread
  inner_->write = at_the_gate();
  const Artifact artifact = artifact_of(key_number(1), 1'000);
  for (std::uint64_t number = 0; number < 1'000; ++number) {
    ASSERT_TRUE(store_->put(key_number(number), artifact, {}).has_value());
  }
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 1; }));
  EXPECT_GE(store_->counts().dropped, 990u);
  gate_ = true;
  ASSERT_TRUE(drained());
  EXPECT_EQ(store_->counts().uploaded + store_->counts().dropped, 1'000u);
}

}  // namespace
}  // namespace kiln::test
