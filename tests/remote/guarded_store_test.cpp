#include "remote/guarded_store.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "base/error.hpp"
#include "store/allowance.hpp"
#include "support/artifacts.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/own_process.hpp"
#include "support/scripted_store.hpp"
#include "support/stepped_clock.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// A guarded store with its courier and guard, by a clock that stands.
class GuardedStoreTest : public testing::Test {
 protected:
  void SetUp() override { build(); }
  void TearDown() override {
    gate_ = true;
    courier_->stop();
  }
  void build() {
    courier_ = std::make_shared<Courier>(policy_, clock_);
    ServerGuard::Parts guard;
    guard.name = "a server";
    guard.probe = [this](nanoseconds) -> Status {
      if (answers_) return {};
      return failure(Code::Unavailable, "gone");
    };
    guard.courier = courier_;
    guard.policy = policy_;
    guard.observer = log_.observer();
    guard.clock = &clock_;
    guard_ = ServerGuard::make(std::move(guard));
    store_ = std::make_unique<GuardedStore>(
        GuardedStore::Parts{inner_, guard_, courier_, policy_, log_.observer(), &clock_});
  }

  bool has(std::uint64_t number) {
    const auto hit = store_->get(key_number(number));
    EXPECT_TRUE(hit.ok());  // it has no errors of its own
    return hit && hit->has_value();
  }
  bool put(std::uint64_t number, std::size_t size = 100) {
    return store_->put(key_number(number), artifact_of(key_number(number), size)).ok();
  }
  bool drained() { return courier_->drain(seconds(20)); }
  void give_up() { ServerGuard::Question(*guard_).failed(failure(Code::Unavailable, "gone")); }
  // Calls of the other store that wait until the gate is open, or for the server's time to be over.
  std::function<Status()> at_the_gate() {
    return [this]() -> Status {
      EXPECT_TRUE(eventually([this] { return gate_.load() || Allowance::over(); })) << "nobody cut it short";
      if (gate_) return {};
      return failure(Code::Cancelled, "nobody wants to know");
    };
  }

  FleetPolicy policy_;
  SteppedClock clock_;
  EventLog log_;
  std::atomic<bool> answers_{false};
  std::atomic<bool> gate_{false};
  std::shared_ptr<ScriptedStore> inner_ = std::make_shared<ScriptedStore>();
  std::shared_ptr<Courier> courier_;
  std::shared_ptr<ServerGuard> guard_;
  std::unique_ptr<GuardedStore> store_;
};

TEST_F(GuardedStoreTest, WhatTheServerHasIsServed) {
  ASSERT_TRUE(inner_->put(key_number(1), artifact_of(key_number(1), 100)).ok());
  EXPECT_TRUE(has(1));
  EXPECT_TRUE(has(1));
  EXPECT_EQ(store_->counts().asked, 2u);
}

TEST_F(GuardedStoreTest, WhatWasAbsentIsNotAskedForAgainAtOnce) {
  EXPECT_FALSE(has(1));
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(store_->closures(request_number(1)).value().empty());
  EXPECT_TRUE(store_->closures(request_number(1)).value().empty());
  EXPECT_EQ(inner_->lookups, 2);
  EXPECT_EQ(store_->counts().spared, 2u);
  clock_.advance(policy_.absent_for * 2);
  EXPECT_FALSE(has(1));
  EXPECT_EQ(inner_->lookups, 3);
}

TEST_F(GuardedStoreTest, ThatTheServerFailedIsNoAbsence) {
  inner_->lookup = [] { return failure(Code::Unsupported, "cannot do that"); };
  EXPECT_FALSE(has(1));
  EXPECT_FALSE(has(1));
  EXPECT_EQ(inner_->lookups, 2);
}

TEST_F(GuardedStoreTest, WhoeverAsksAfreshIsNotToldOfAnAbsenceFromBefore) {
  EXPECT_FALSE(has(1));
  ASSERT_TRUE(inner_->put(key_number(1), artifact_of(key_number(1), 100)).ok());
  EXPECT_FALSE(has(1));
  Allowance allowance(policy_.budget);
  allowance.ask_afresh();
  EXPECT_TRUE(has(1));
}

TEST_F(GuardedStoreTest, WhatThisHostPutsIsNotAbsentAnyMore) {
  EXPECT_FALSE(has(1));
  ASSERT_TRUE(store_->closures(request_number(1)).value().empty());
  ASSERT_TRUE(put(1));
  ASSERT_TRUE(store_->add_closure(request_number(1), closure_number(1)).ok());
  ASSERT_TRUE(drained());
  EXPECT_TRUE(has(1));
  EXPECT_EQ(store_->closures(request_number(1)).value().size(), 1u);
}

TEST_F(GuardedStoreTest, TheFirstFailureIsTheLastThatAnybodyPaysFor) {
  inner_->lookup = [&]() -> Status {
    clock_.advance(Allowance::at_most(seconds(10)));
    return failure(Code::TimedOut, "no answer");
  };
  Allowance allowance(policy_.budget);
  const nanoseconds start = clock_.steady();
  EXPECT_FALSE(has(1));
  const nanoseconds paid = clock_.steady() - start;
  EXPECT_LE(paid, policy_.budget);
  EXPECT_EQ(allowance.left(), policy_.budget - paid);
  const Allowance next(policy_.budget);
  for (std::uint64_t number = 1; number < 100; ++number) EXPECT_FALSE(has(number));
  EXPECT_EQ(clock_.steady() - start, paid);
  EXPECT_EQ(inner_->lookups, 1);
  EXPECT_EQ(store_->counts().refused, 99u);
}

TEST_F(GuardedStoreTest, WhereNobodySaysHowLongTheBudgetBindsTheServer) {
  nanoseconds told{0};
  inner_->lookup = [&]() -> Status {
    told = Allowance::at_most(seconds(10));
    return {};
  };
  EXPECT_FALSE(has(1));
  EXPECT_GT(told, nanoseconds(0));
  EXPECT_LE(told, policy_.budget);
}

TEST_F(GuardedStoreTest, WithoutTimeLeftNothingIsAsked) {
  const Allowance none(nanoseconds(0));
  EXPECT_FALSE(has(1));
  EXPECT_TRUE(store_->closures(request_number(1)).value().empty());
  EXPECT_EQ(inner_->lookups, 0);
  EXPECT_TRUE(guard_->closed());
}

TEST_F(GuardedStoreTest, ItIsAskedAgainWhenItIsBack) {
  ASSERT_TRUE(inner_->put(key_number(1), artifact_of(key_number(1), 100)).ok());
  give_up();
  EXPECT_FALSE(has(1));
  answers_ = true;
  EXPECT_TRUE(eventually([&] {
    clock_.advance(milliseconds(100));
    return has(1);
  }));
}

TEST_F(GuardedStoreTest, RejectedAnswersAreAbsencesAndManyInARowGiveTheServerUp) {
  inner_->lookup = [] { return failure(Code::Corrupt, "signed by nobody"); };
  for (std::uint64_t number = 1; number < policy_.rejections_in_a_row; ++number) {
    EXPECT_FALSE(has(number));
    EXPECT_FALSE(has(number));  // remembered
  }
  EXPECT_EQ(inner_->lookups, static_cast<int>(policy_.rejections_in_a_row) - 1);
  EXPECT_TRUE(guard_->closed());
  EXPECT_FALSE(has(1000));
  EXPECT_FALSE(guard_->closed());
}

TEST_F(GuardedStoreTest, OneLookupOfAKeyAtATime) {
  ASSERT_TRUE(inner_->put(key_number(1), artifact_of(key_number(1), 100)).ok());
  inner_->lookup = at_the_gate();
  std::atomic<int> hits{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { hits += has(1) ? 1 : 0; });
  EXPECT_TRUE(eventually([&] { return store_->counts().spared == 7; }));
  EXPECT_EQ(inner_->lookups, 1);
  gate_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(hits, 8);
  EXPECT_EQ(inner_->lookups, 1);
}

TEST_F(GuardedStoreTest, ClosuresAreLookedUpOnceForAllHoweverManyEachWants) {
  for (const int number : {1, 2, 3}) ASSERT_TRUE(inner_->add_closure(request_number(1), closure_number(number)).ok());
  inner_->lookup = at_the_gate();
  std::vector<std::size_t> found(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] { found[i] = store_->closures(request_number(1), i).value().size(); });
  }
  EXPECT_TRUE(eventually([&] { return store_->counts().spared == 3; }));
  gate_ = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, (std::vector<std::size_t>{0, 1, 2, 3}));
  EXPECT_EQ(inner_->lookups, 1);
}

TEST_F(GuardedStoreTest, WhoeverWaitsForAnothersLookupWaitsNoLongerThanHeMay) {
  inner_->lookup = at_the_gate();
  std::thread first([&] { EXPECT_FALSE(has(1)); });
  ASSERT_TRUE(eventually([&] { return inner_->lookups == 1; }));
  std::atomic<bool> second_done{false};
  std::thread second([&] {
    const Allowance allowance(milliseconds(30));
    EXPECT_FALSE(has(1));
    EXPECT_LT(allowance.left(), milliseconds(30));
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

TEST_F(GuardedStoreTest, WhoeverAsksAfreshDoesNotJoinALookupFromBefore) {
  inner_->lookup = at_the_gate();
  std::thread first([&] { (void)has(1); });
  ASSERT_TRUE(eventually([&] { return inner_->lookups == 1; }));
  std::thread second([&] {
    Allowance allowance(policy_.budget);
    allowance.ask_afresh();
    (void)has(1);
  });
  EXPECT_TRUE(eventually([&] { return inner_->lookups == 2; }));
  gate_ = true;
  first.join();
  second.join();
}

TEST_F(GuardedStoreTest, APutReturnsBeforeAnythingIsSentAndTheUploadIsTold) {
  inner_->write = at_the_gate();
  ASSERT_TRUE(put(1, 5'000));
  ASSERT_TRUE(store_->add_closure(request_number(1), closure_number(1)).ok());
  gate_ = true;
  ASSERT_TRUE(drained());
  const auto told = log_.of(Event::Kind::Uploaded);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].key, key_number(1).hex());
  EXPECT_EQ(told[0].bytes, 5'000u);
  EXPECT_EQ(told[0].unit, "unit of a test");
  EXPECT_EQ(store_->counts().uploaded, 2u);
  EXPECT_EQ(store_->counts().dropped, 0u);
}

TEST_F(GuardedStoreTest, AnUploadMayTakeLongerThanALookup) {
  nanoseconds told{0};
  inner_->write = [&]() -> Status {
    told = Allowance::at_most(std::chrono::hours(1));
    return {};
  };
  ASSERT_TRUE(put(1));
  ASSERT_TRUE(drained());
  EXPECT_EQ(told, policy_.upload_limit);
}

TEST_F(GuardedStoreTest, WhatDoesNotFitIsDroppedAndToldAndNoErrorOfPut) {
  courier_->stop();
  policy_.most_uploads = 2;
  build();
  inner_->write = at_the_gate();
  for (std::uint64_t number = 1; number <= 5; ++number) EXPECT_TRUE(put(number));
  gate_ = true;
  ASSERT_TRUE(drained());
  const auto told = log_.of(Event::Kind::UploadDropped);
  ASSERT_EQ(told.size(), 3u);
  EXPECT_EQ(told[0].key, key_number(3).hex());
  EXPECT_EQ(told[0].message, "too much is waiting to be sent already");
  EXPECT_EQ(store_->counts().uploaded, 2u);
  EXPECT_EQ(store_->counts().dropped, 3u);
}

TEST_F(GuardedStoreTest, NothingWaitsForAServerThatIsGivenUp) {
  give_up();
  EXPECT_TRUE(put(1));
  EXPECT_TRUE(drained());
  EXPECT_EQ(inner_->writes, 0);
  ASSERT_EQ(log_.count(Event::Kind::UploadDropped), 1u);
  EXPECT_EQ(log_.of(Event::Kind::UploadDropped)[0].message, "the server is not asked until it answers again");
}

TEST_F(GuardedStoreTest, AServerThatIsGivenUpTakesNothingThatWasQueuedAndCutsShortWhatIsUnderWay) {
  inner_->write = at_the_gate();
  for (std::uint64_t number = 1; number <= 10; ++number) ASSERT_TRUE(put(number));
  ASSERT_TRUE(eventually([&] { return inner_->writes == 1; }));
  give_up();
  ASSERT_TRUE(drained());  // by a clock that stands
  EXPECT_EQ(inner_->writes, 1);
  EXPECT_EQ(store_->counts().dropped, 10u);
}

TEST_F(GuardedStoreTest, AnUploadThatFailsGivesTheServerUpAndOneThatIsRefusedDoesNot) {
  inner_->write = [] { return failure(Code::Refused, "read only"); };
  ASSERT_TRUE(put(1));
  ASSERT_TRUE(drained());
  EXPECT_TRUE(guard_->closed());
  ASSERT_EQ(log_.count(Event::Kind::UploadDropped), 1u);
  EXPECT_EQ(log_.of(Event::Kind::UploadDropped)[0].message, "read only");
  inner_->write = [] { return failure(Code::Unavailable, "the disk is full"); };
  ASSERT_TRUE(put(2));
  ASSERT_TRUE(drained());
  EXPECT_FALSE(guard_->closed());
  EXPECT_EQ(store_->counts().dropped, 2u);
}

TEST_F(GuardedStoreTest, TheEndOfASessionDropsWhatIsNotSentAndTellsIt) {
  courier_->stop();
  policy_.drain_limit = nanoseconds(0);
  build();
  inner_->write = at_the_gate();
  for (std::uint64_t number = 1; number <= 3; ++number) ASSERT_TRUE(put(number));
  ASSERT_TRUE(eventually([&] { return inner_->writes == 1; }));
  courier_->stop();
  EXPECT_EQ(store_->counts().dropped, 3u);
  ASSERT_EQ(log_.count(Event::Kind::UploadDropped), 3u);
  EXPECT_EQ(inner_->writes, 1);
}

TEST_F(GuardedStoreTest, AHostThatOnlyReadsSendsNothing) {
  inner_->may_write = false;
  EXPECT_FALSE(store_->writable());
  EXPECT_FALSE(put(1));
  EXPECT_FALSE(store_->add_closure(request_number(1), closure_number(1)).ok());
  EXPECT_EQ(log_.count(Event::Kind::UploadDropped), 0u);
}

TEST_F(GuardedStoreTest, AStoreThatIsGoneLeavesItsUploadsToTheCourier) {
  inner_->write = at_the_gate();
  ASSERT_TRUE(put(1));
  store_.reset();
  gate_ = true;
  ASSERT_TRUE(drained());
  EXPECT_EQ(log_.count(Event::Kind::Uploaded), 1u);
}

TEST_F(GuardedStoreTest, ThreadsAndMemoryAreBoundHoweverMuchIsPutAndAskedFor) {
  courier_->stop();
  policy_.most_uploads = 10;
  policy_.most_absent = 10;
  build();
  for (std::uint64_t number = 0; number < 100; ++number) EXPECT_FALSE(has(number));
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 0; }));  // questions are asked on the asker's thread
  inner_->write = at_the_gate();
  const Artifact artifact = artifact_of(key_number(1), 1'000);
  for (std::uint64_t number = 0; number < 1'000; ++number) {
    ASSERT_TRUE(store_->put(key_number(number), artifact).ok());
  }
  EXPECT_TRUE(eventually([] { return threads_of_kiln() == 1; }));
  EXPECT_GE(store_->counts().dropped, 990u);
  gate_ = true;
  ASSERT_TRUE(drained());
  EXPECT_EQ(store_->counts().uploaded + store_->counts().dropped, 1'000u);
}

}  // namespace
}  // namespace kiln::test
