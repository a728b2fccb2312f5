#include "support/engine_fixture.hpp"

#include <set>
#include <thread>

namespace kiln::test {
namespace {

TEST_F(EngineTest, RequestReturnsWithoutRunningAnythingOnTheCallersThread) {
  work_.otherwise({.held = true});
  Engine engine(parts());
  request(engine, {"a", "b"});
  EXPECT_TRUE(work_.begun("a"));
  work_.open("a");
  work_.open("b");
  EXPECT_TRUE(settles(engine));
  for (const SeenThread& thread : work_.threads()) EXPECT_NE(thread.id, std::this_thread::get_id());
}

TEST_F(EngineTest, AGetRunsNothingOnTheCallersThread) {
  Engine engine(parts());
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  ASSERT_FALSE(work_.threads().empty());
  for (const SeenThread& thread : work_.threads()) EXPECT_NE(thread.id, std::this_thread::get_id());
}

TEST_F(EngineTest, WhatWasRequestedTwiceCompilesOnce) {
  work_.when("a", {.held = true});
  Engine engine(parts());
  const std::vector<Order> orders = ScriptedWork::orders({"a", "b"});
  engine.request(orders);
  engine.request(orders);
  EXPECT_TRUE(work_.begun("a"));
  engine.request(orders);
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  engine.request(orders);
  EXPECT_TRUE(get(engine, "a").ok());
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("a"), 1);
  EXPECT_EQ(work_.compiles("b"), 1);
  EXPECT_EQ(log_.count(Event::Kind::Requested), 2U);
}

TEST_F(EngineTest, AGlanceShowsWhatRunsAndWhoWaitsFirstAndCountsAll) {
  work_.when("slow", {.held = true});
  Engine engine(parts());
  request(engine, {"a", "b", "c"});
  EXPECT_TRUE(settles(engine));
  auto waiter = getting(engine, "slow");
  EXPECT_TRUE(work_.begun("slow"));
  EXPECT_TRUE(clock_.waiting(1));
  clock_.advance(2s);
  const Glance glance = engine.glance(2);
  work_.open("slow");
  EXPECT_TRUE(waiter.get().ok());
  EXPECT_EQ(glance.sums.submitted, 4U);
  EXPECT_EQ(glance.sums.compiled, 3U);
  EXPECT_EQ(glance.sums.pending, 1U);
  EXPECT_EQ(glance.waiters, 1U);
  ASSERT_EQ(glance.units.size(), 2U);
  EXPECT_EQ(glance.units[0].status.unit, "slow");
  EXPECT_EQ(glance.units[0].status.state, State::Running);
  EXPECT_EQ(glance.units[0].status.ms, 2000);
  EXPECT_EQ(glance.units[0].waiters, 1U);
  EXPECT_EQ(glance.units[1].status.state, State::Ready);
}

TEST_F(EngineTest, TwoUnitsOfEqualContentAreOneFlight) {
  work_.otherwise({.held = true});
  Engine engine(parts());
  request(engine, {"a"});
  request(engine, {"a"});
  request(engine, {"a", "a"});
  auto waiter = getting(engine, "a");
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_TRUE(clock_.waiting(1));
  work_.open("a");
  EXPECT_EQ(text(waiter.get()), "compiled source of a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, AFailureOfOneOfTwoEqualUnitsIsThatOfBoth) {
  work_.when("a", {.held = true, .error = ScriptedWork::refusal()});
  Engine engine(parts());
  request(engine, {"a", "a", "a"});
  EXPECT_TRUE(work_.begun("a"));
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("a"), 1);
  EXPECT_EQ(code(get(engine, "a", 0ns)), Code::CompileFailed);
}

TEST_F(EngineTest, OneUnitForTwoTargetsIsTwoFlights) {
  Engine engine(parts());
  const Unit unit = order("a").unit;
  const std::vector<Order> orders = {{unit, Target::sm(80)}, {unit, Target::sm(90)}};
  engine.request(orders);
  const auto first = engine.get(orders[0], kForever);
  const auto second = engine.get(orders[1], kForever);
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)->artifact.target, Target::sm(80));
  EXPECT_EQ((*second)->artifact.target, Target::sm(90));
  EXPECT_EQ(work_.compiles(orders[0]), 1);
  EXPECT_EQ(work_.compiles(orders[1]), 1);
}

TEST_F(EngineTest, TwoUnitsThatAskTheCompilerForTheSameAreCompiledOneAfterTheOther) {
  work_.when("a", {.held = true});
  Engine engine(parts(), {.most_threads = 2});
  // Where include folders lie is no part of a request, so a store may have for the second what the first left there.
  const Unit unit = order("a").unit;
  const std::vector<Order> orders = {{unit.include_root("/here"), Target::sm(80)},
                                     {unit.include_root("/there"), Target::sm(80)}};
  engine.request(orders);
  EXPECT_TRUE(work_.begun("a"));
  auto second = std::async(std::launch::async, [&] { return engine.get(orders[1], kForever); });
  EXPECT_TRUE(clock_.waiting(1));
  request(engine, {"b"});
  EXPECT_TRUE(work_.begun("b")) << "whoever waits for another takes no thread";
  EXPECT_EQ(work_.times_begun("a"), 1);
  work_.open("a");
  EXPECT_TRUE(second.get().ok());
  EXPECT_TRUE(engine.get(orders[0], kForever).ok());
  EXPECT_EQ(work_.times_begun("a"), 2);
}

TEST_F(EngineTest, AGetJoinsAFlightThatRuns) {
  work_.when("a", {.held = true});
  Engine engine(parts());
  request(engine, {"a"});
  EXPECT_TRUE(work_.begun("a"));
  std::vector<std::future<Got>> waiters;
  for (int i = 0; i < 4; ++i) waiters.push_back(getting(engine, "a"));
  EXPECT_TRUE(clock_.waiting(4));
  work_.open("a");
  std::set<const Answer*> answers;
  for (auto& waiter : waiters) {
    const Got got = waiter.get();
    ASSERT_TRUE(got.ok());
    answers.insert(*got);
  }
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, AGetIsServedBeforeAllThatNobodyWaitsFor) {
  work_.when("long", {.held = true});
  Engine engine(parts(), {.most_threads = 1});
  request(engine, {"long"});
  EXPECT_TRUE(work_.begun("long"));
  const std::vector<Order> queued = ScriptedWork::orders({"b", "c", "d"});
  engine.request(queued);
  EXPECT_EQ(text(engine.get(queued[2], kForever)), "compiled source of d");
  EXPECT_EQ(text(get(engine, "new")), "compiled source of new");
  EXPECT_EQ(work_.begun_in_order(), (Strings{"long", "d", "new"}));
  work_.open("long");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.begun_in_order(), (Strings{"long", "d", "new", "b", "c"}));
}

TEST_F(EngineTest, AGetOfAnEqualUnitIsServedFirstToo) {
  work_.when("long", {.held = true});
  Engine engine(parts(), {.most_threads = 1});
  request(engine, {"long", "b", "c"});
  EXPECT_TRUE(work_.begun("long"));
  EXPECT_EQ(text(get(engine, "c")), "compiled source of c");
  work_.open("long");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.begun_in_order(), (Strings{"long", "c", "b"}));
}

TEST_F(EngineTest, WhoeverWaitsByARealClockWakesWhenItLands) {
  work_.when("a", {.held = true});
  Engine engine(work_.parts());
  auto waiter = getting(engine, "a");
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_EQ(waiter.wait_for(5ms), std::future_status::timeout);
  work_.open("a");
  EXPECT_EQ(waiter.wait_for(10s), std::future_status::ready) << "nobody told it";
}

TEST_F(EngineTest, ARequestForWhatSomebodyWaitsForPassesTheBackgroundToo) {
  work_.when("long", {.held = true});
  Engine engine(parts(), {.most_threads = 1});
  request(engine, {"long", "b"});
  EXPECT_TRUE(work_.begun("long"));
  engine.request(ScriptedWork::orders({"b", "c"}), Priority::Waited);
  EXPECT_TRUE(work_.begun("b"));
  EXPECT_TRUE(work_.begun("c"));
}

TEST_F(EngineTest, BackgroundWorkIsDoneInTheOrderOfRequests) {
  work_.when("a", {.held = true});
  Engine engine(parts(), {.most_threads = 1});
  request(engine, {"a", "b", "c"});
  request(engine, {"d", "b", "e"});
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.begun_in_order(), (Strings{"a", "b", "c", "d", "e"}));
}

TEST_F(EngineTest, AnOrderRunsBesideAnotherWhereThereAreThreads) {
  work_.otherwise({.held = true});
  Engine engine(parts(), {.most_threads = 2});
  request(engine, {"a"});
  EXPECT_TRUE(work_.begun("a"));
  request(engine, {"b"});
  EXPECT_TRUE(work_.begun("b")) << "a thread is to be had and was not started";
  auto c = getting(engine, "c");
  EXPECT_TRUE(work_.begun("c"));
  auto d = getting(engine, "d");
  EXPECT_TRUE(work_.begun("d")) << "somebody waits for somebody else's compile";
  for (const char* name : {"a", "b", "c", "d"}) work_.open(name);
  EXPECT_TRUE(c.get().ok() && d.get().ok());
}

TEST_F(EngineTest, AGetThatTimesOutLeavesTheFlightRunning) {
  work_.when("a", {.held = true});
  Engine engine(parts());
  auto waiter = getting(engine, "a", 5ms);
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_TRUE(clock_.waiting(1));
  clock_.advance(4ms);
  EXPECT_EQ(waiter.wait_for(5ms), std::future_status::timeout) << "it had a millisecond left";
  clock_.advance(1ms);
  EXPECT_EQ(code(waiter.get()), Code::TimedOut);
  EXPECT_EQ(states(engine)["a"], State::Running);
  work_.open("a");
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, AGetWithoutTimeNeverWaitsAndStillOrders) {
  work_.otherwise({.held = true});
  Engine engine(parts());
  EXPECT_EQ(code(get(engine, "a", 0ns)), Code::TimedOut);
  EXPECT_EQ(code(get(engine, "a", -1s)), Code::TimedOut);
  EXPECT_EQ(engine.ready(order("a")), nullptr);
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(text(get(engine, "a", 0ns)), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, ReadyIsTheAnswerOfAGetAndStaysWhereItIs) {
  Engine engine(parts());
  EXPECT_EQ(engine.ready(order("a")), nullptr);
  const Answer* answer = get(engine, "a").value();
  EXPECT_EQ(engine.ready(order("a")), answer);
  Strings names;
  for (int i = 0; i < 2000; ++i) names.push_back("other " + std::to_string(i));
  request(engine, names);
  for (const std::string& name : names) ASSERT_TRUE(get(engine, name).ok());
  EXPECT_EQ(engine.ready(order("a")), answer);
  EXPECT_EQ(answer->artifact.bytes.view(), "compiled source of a");
}

TEST_F(EngineTest, AFailureIsGivenToEachWaiterWithItsLog) {
  work_.when("a", {.held = true, .error = ScriptedWork::refusal()});
  Engine engine(parts());
  std::vector<std::future<Got>> waiters;
  for (int i = 0; i < 8; ++i) waiters.push_back(getting(engine, "a"));
  EXPECT_TRUE(clock_.waiting(8));
  work_.open("a");
  for (auto& waiter : waiters) {
    const Got got = waiter.get();
    ASSERT_FALSE(got.ok());
    EXPECT_EQ(got.error().code, Code::CompileFailed);
    EXPECT_EQ(got.error().log, "line 1: no");
  }
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, AFailureIsRememberedUntilRetry) {
  work_.when("a", {.error = ScriptedWork::refusal()});
  Engine engine(parts());
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  work_.when("a", {});
  const Got again = get(engine, "a", 0ns);
  EXPECT_EQ(code(again), Code::CompileFailed);
  EXPECT_EQ(again.ok() ? "" : again.error().log, "line 1: no");
  request(engine, {"a"});
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("a"), 1);
  EXPECT_EQ(states(engine)["a"], State::Failed);

  engine.retry(ScriptedWork::orders({"a"}));
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 2);
}

TEST_F(EngineTest, ARetryLetsARequestTryAgain) {
  work_.when("a", {.error = ScriptedWork::refusal()});
  Engine engine(parts());
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  work_.when("a", {});
  engine.retry(ScriptedWork::orders({"a", "never heard of"}));
  request(engine, {"a"});
  EXPECT_TRUE(settles(engine));
  EXPECT_NE(engine.ready(order("a")), nullptr);
}

TEST_F(EngineTest, AFailureIsTriedAgainWhenItsInputsChanged) {
  work_.when("a", {.error = ScriptedWork::refusal()});
  Engine engine(parts());
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  work_.when("a", {});
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  work_.inputs_changed("a", true);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 2);
}

TEST_F(EngineTest, WithoutItsOptionalPartsInputsNeverChange) {
  work_.when("a", {.error = ScriptedWork::refusal()});
  Engine::Parts bare = parts();
  bare.changed_since_failure = nullptr;
  bare.interrupt = nullptr;
  Engine engine(bare);
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  EXPECT_EQ(text(get(engine, "b")), "compiled source of b");
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, ARecipeThatCannotBeHadIsTheFlightsError) {
  work_.when("a", {.no_recipe = failure(Code::Unavailable, "no compiler here")});
  Engine engine(parts());
  const Got got = get(engine, "a");
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().message, "no compiler here");
  EXPECT_EQ(work_.times_begun("a"), 0);
  EXPECT_EQ(states(engine)["a"], State::Failed);
}

TEST_F(EngineTest, WhatIsForgottenIsOrderedAnew) {
  Engine engine(parts());
  const Answer* first = get(engine, "a").value();
  engine.forget(order("a"));
  engine.forget(order("never heard of"));
  EXPECT_EQ(engine.ready(order("a")), nullptr);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 2);
  EXPECT_EQ(first->artifact.bytes.view(), "compiled source of a") << "somebody may still look at it";
}

}  // namespace
}  // namespace kiln::test
