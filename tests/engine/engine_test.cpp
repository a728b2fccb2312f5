// SPDX-License-Identifier: Apache-2.0
#include "support/fixtures/engine_fixture.hpp"

#include <set>
#include <thread>

namespace kiln::test {
namespace {

TEST_F(EngineTest, RequestRunsNothingOnCallerThread) {
  work_.otherwise({.held = true});
  ScriptedEngine engine(params());
  request(engine, {"a", "b"});
  EXPECT_TRUE(work_.begun("a"));
  work_.open("a");
  work_.open("b");
  EXPECT_TRUE(settles(engine));
  for (const SeenThread& thread : work_.threads()) EXPECT_NE(thread.id, std::this_thread::get_id());
}

TEST_F(EngineTest, GetRunsNothingOnCallerThread) {
  ScriptedEngine engine(params());
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  ASSERT_FALSE(work_.threads().empty());
  for (const SeenThread& thread : work_.threads()) EXPECT_NE(thread.id, std::this_thread::get_id());
}

TEST_F(EngineTest, RepeatedRequestCompilesOnce) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params());
  const std::vector<CompileRequest> requests = ScriptedWork::requests({"a", "b"});
  engine.request(requests);
  engine.request(requests);
  EXPECT_TRUE(work_.begun("a"));
  engine.request(requests);
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  engine.request(requests);
  EXPECT_TRUE(get(engine, "a").has_value());
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("a"), 1);
  EXPECT_EQ(work_.compiles("b"), 1);
  EXPECT_EQ(log_.count(Event::Kind::Requested), 2U);
}

TEST_F(EngineTest, StatusSnapshotShowsRunningAndWaitedForFirst) {
  work_.when("slow", {.held = true});
  ScriptedEngine engine(params());
  request(engine, {"a", "b", "c"});
  EXPECT_TRUE(settles(engine));
  auto waiter = getting(engine, "slow");
  EXPECT_TRUE(work_.begun("slow"));
  EXPECT_TRUE(clock_.waiting(1));
  clock_.advance(2s);
  const StatusSnapshot snapshot = engine.status_snapshot(2);
  work_.open("slow");
  EXPECT_TRUE(waiter.get().has_value());
  EXPECT_EQ(snapshot.totals.submitted, 4U);
  EXPECT_EQ(snapshot.totals.compiled, 3U);
  EXPECT_EQ(snapshot.totals.pending, 1U);
  EXPECT_EQ(snapshot.waiters, 1U);
  ASSERT_EQ(snapshot.units.size(), 2U);
  EXPECT_EQ(snapshot.units[0].status.unit, "slow");
  EXPECT_EQ(snapshot.units[0].status.state, State::Running);
  EXPECT_EQ(snapshot.units[0].status.ms, 2000);
  EXPECT_EQ(snapshot.units[0].waiters, 1U);
  EXPECT_EQ(snapshot.units[1].status.state, State::Ready);
}

TEST_F(EngineTest, EqualUnitsShareOneTask) {
  work_.otherwise({.held = true});
  ScriptedEngine engine(params());
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

TEST_F(EngineTest, EqualUnitsShareFailure) {
  work_.when("a", {.held = true, .error = ScriptedWork::rejection()});
  ScriptedEngine engine(params());
  request(engine, {"a", "a", "a"});
  EXPECT_TRUE(work_.begun("a"));
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("a"), 1);
  EXPECT_EQ(code(get(engine, "a", 0ns)), Code::CompileFailed);
}

TEST_F(EngineTest, TargetsOfOneUnitAreSeparateTasks) {
  ScriptedEngine engine(params());
  const Unit unit = request("a").unit;
  const std::vector<CompileRequest> requests = {{unit, Target::sm(80)}, {unit, Target::sm(90)}};
  engine.request(requests);
  const auto first = engine.get(requests[0], kForever);
  const auto second = engine.get(requests[1], kForever);
  ASSERT_TRUE(first && second);
  EXPECT_EQ((*first)->artifact.target, Target::sm(80));
  EXPECT_EQ((*second)->artifact.target, Target::sm(90));
  EXPECT_EQ(work_.compiles(requests[0]), 1);
  EXPECT_EQ(work_.compiles(requests[1]), 1);
}

TEST_F(EngineTest, EqualCompileRequestsRunOneAfterTheOther) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 2});
  // The location of include directories is not part of a request, so the second may find in the store what the first
  // left.
  const Unit unit = request("a").unit;
  const std::vector<CompileRequest> requests = {{unit.with_include_root("/here"), Target::sm(80)},
                                                {unit.with_include_root("/there"), Target::sm(80)}};
  engine.request(requests);
  EXPECT_TRUE(work_.begun("a"));
  auto second = std::async(std::launch::async, [&] { return engine.get(requests[1], kForever); });
  EXPECT_TRUE(clock_.waiting(1));
  request(engine, {"b"});
  EXPECT_TRUE(work_.begun("b")) << "a parked task uses no thread";
  EXPECT_EQ(work_.times_begun("a"), 1);
  work_.open("a");
  EXPECT_TRUE(second.get().has_value());
  EXPECT_TRUE(engine.get(requests[0], kForever).has_value());
  EXPECT_EQ(work_.times_begun("a"), 2);
}

TEST_F(EngineTest, GetJoinsRunningTask) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params());
  request(engine, {"a"});
  EXPECT_TRUE(work_.begun("a"));
  std::vector<std::future<Got>> waiters;
  for (int i = 0; i < 4; ++i) waiters.push_back(getting(engine, "a"));
  EXPECT_TRUE(clock_.waiting(4));
  work_.open("a");
  std::set<ResolveResultPtr> answers;
  for (auto& waiter : waiters) {
    const Got got = waiter.get();
    ASSERT_TRUE(got.has_value());
    answers.insert(*got);
  }
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, GetMakesRunningBackgroundTaskUrgent) {
  work_.when("one", {.held = true});
  ResolverScript watched = params();
  std::promise<Urgency> seen;
  watched.resolve = [&, resolve = watched.resolve](const CompileRequest& of, const Recipe& recipe,
                                                   const RequestContext& context) {
    seen.set_value(context.urgent);
    return resolve(of, recipe, context);
  };
  ScriptedEngine engine(std::move(watched), {2});
  request(engine, {"one"});
  const Urgency urgent = seen.get_future().get();
  EXPECT_FALSE(urgent.is_raised());
  auto got = getting(engine, "one");
  EXPECT_TRUE(eventually([&] { return urgent.is_raised(); }));
  work_.open("one");
  EXPECT_TRUE(got.get().has_value());
}

TEST_F(EngineTest, GetOfParkedTaskMakesRunningTaskUrgent) {
  // Two units with the same compile request: the second is parked until the first completes.
  work_.when("one", {.held = true});
  ResolverScript watched = params();
  std::promise<Urgency> seen;
  std::atomic<int> recipes{0};
  watched.recipe = [&, recipe = watched.recipe](const CompileRequest&) {
    ++recipes;
    return recipe(request("one"));
  };
  watched.resolve = [&, resolve = watched.resolve, first = std::make_shared<std::atomic<bool>>(true)](
                        const CompileRequest& of, const Recipe& recipe, const RequestContext& context) {
    if (first->exchange(false)) seen.set_value(context.urgent);
    return resolve(of, recipe, context);
  };
  ScriptedEngine engine(std::move(watched), {2});
  request(engine, {"one"});
  const Urgency urgent = seen.get_future().get();
  request(engine, {"two"});
  EXPECT_TRUE(eventually([&] { return recipes == 2; }));
  EXPECT_FALSE(urgent.is_raised());
  auto got = getting(engine, "two");
  EXPECT_TRUE(eventually([&] { return urgent.is_raised(); }));
  work_.open("one");
  EXPECT_TRUE(got.get().has_value());
}

TEST_F(EngineTest, GetRunsBeforeBackgroundTasks) {
  work_.when("long", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"long"});
  EXPECT_TRUE(work_.begun("long"));
  const std::vector<CompileRequest> queued = ScriptedWork::requests({"b", "c", "d"});
  engine.request(queued);
  EXPECT_EQ(text(engine.get(queued[2], kForever)), "compiled source of d");
  EXPECT_EQ(text(get(engine, "new")), "compiled source of new");
  EXPECT_EQ(work_.begun_in_order(), (Strings{"long", "d", "new"}));
  work_.open("long");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.begun_in_order(), (Strings{"long", "d", "new", "b", "c"}));
}

TEST_F(EngineTest, GetOfEqualUnitIsServedFirstToo) {
  work_.when("long", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"long", "b", "c"});
  EXPECT_TRUE(work_.begun("long"));
  EXPECT_EQ(text(get(engine, "c")), "compiled source of c");
  work_.open("long");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.begun_in_order(), (Strings{"long", "c", "b"}));
}

TEST_F(EngineTest, WaiterWithRealClockWakesOnCompletion) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(work_.params());
  auto waiter = getting(engine, "a");
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_EQ(waiter.wait_for(5ms), std::future_status::timeout);
  work_.open("a");
  EXPECT_EQ(waiter.wait_for(10s), std::future_status::ready) << "it was not notified";
}

TEST_F(EngineTest, ForegroundRequestRunsBeforeBackground) {
  work_.when("long", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"long", "b"});
  EXPECT_TRUE(work_.begun("long"));
  engine.request(ScriptedWork::requests({"b", "c"}), Priority::Foreground);
  EXPECT_TRUE(work_.begun("b"));
  EXPECT_TRUE(work_.begun("c"));
}

TEST_F(EngineTest, BackgroundTasksRunInOrderOfRequest) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"a", "b", "c"});
  request(engine, {"d", "b", "e"});
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.begun_in_order(), (Strings{"a", "b", "c", "d", "e"}));
}

TEST_F(EngineTest, TasksRunConcurrentlyIfThereAreThreads) {
  work_.otherwise({.held = true});
  ScriptedEngine engine(params(), {.max_threads = 2});
  request(engine, {"a"});
  EXPECT_TRUE(work_.begun("a"));
  request(engine, {"b"});
  EXPECT_TRUE(work_.begun("b")) << "an available thread was not started";
  auto c = getting(engine, "c");
  EXPECT_TRUE(work_.begun("c"));
  auto d = getting(engine, "d");
  EXPECT_TRUE(work_.begun("d")) << "a caller waits for the compile of another";
  for (const char* name : {"a", "b", "c", "d"}) work_.open(name);
  EXPECT_TRUE(c.get().has_value() && d.get().has_value());
}

TEST_F(EngineTest, TimedOutGetLeavesTaskRunning) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params());
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

TEST_F(EngineTest, GetWithZeroTimeoutNeverWaitsAndStillSchedules) {
  work_.otherwise({.held = true});
  ScriptedEngine engine(params());
  EXPECT_EQ(code(get(engine, "a", 0ns)), Code::TimedOut);
  EXPECT_EQ(code(get(engine, "a", -1s)), Code::TimedOut);
  EXPECT_EQ(engine.ready(request("a")), nullptr);
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(text(get(engine, "a", 0ns)), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, ReadyReturnsStableResultOfGet) {
  ScriptedEngine engine(params());
  EXPECT_EQ(engine.ready(request("a")), nullptr);
  const ResolveResultPtr answer = get(engine, "a").value();
  EXPECT_EQ(engine.ready(request("a")), answer.get());
  Strings names;
  for (int i = 0; i < 2000; ++i) names.push_back("other " + std::to_string(i));
  request(engine, names);
  for (const std::string& name : names) ASSERT_TRUE(get(engine, name).has_value());
  EXPECT_EQ(engine.ready(request("a")), answer.get());
  EXPECT_EQ(answer->artifact.bytes.view(), "compiled source of a");
}

TEST_F(EngineTest, FailureIsGivenToEachWaiterWithItsLog) {
  work_.when("a", {.held = true, .error = ScriptedWork::rejection()});
  ScriptedEngine engine(params());
  std::vector<std::future<Got>> waiters;
  for (int i = 0; i < 8; ++i) waiters.push_back(getting(engine, "a"));
  EXPECT_TRUE(clock_.waiting(8));
  work_.open("a");
  for (auto& waiter : waiters) {
    const Got got = waiter.get();
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().code, Code::CompileFailed);
    EXPECT_EQ(got.error().log, "line 1: no");
  }
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, FailureIsCachedUntilRetry) {
  work_.when("a", {.error = ScriptedWork::rejection()});
  ScriptedEngine engine(params());
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  work_.when("a", {});
  const Got again = get(engine, "a", 0ns);
  EXPECT_EQ(code(again), Code::CompileFailed);
  EXPECT_EQ(again.has_value() ? "" : again.error().log, "line 1: no");
  request(engine, {"a"});
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("a"), 1);
  EXPECT_EQ(states(engine)["a"], State::Failed);

  engine.retry(ScriptedWork::requests({"a"}));
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 2);
}

TEST_F(EngineTest, RetryLetsRequestTryAgain) {
  work_.when("a", {.error = ScriptedWork::rejection()});
  ScriptedEngine engine(params());
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  work_.when("a", {});
  engine.retry(ScriptedWork::requests({"a", "never heard of"}));
  request(engine, {"a"});
  EXPECT_TRUE(settles(engine));
  EXPECT_NE(engine.ready(request("a")), nullptr);
}

TEST_F(EngineTest, FailureIsRetriedWhenInputsChange) {
  work_.when("a", {.error = ScriptedWork::rejection()});
  ScriptedEngine engine(params());
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  work_.when("a", {});
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  work_.inputs_changed("a", true);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 2);
}

TEST_F(EngineTest, InputsNeverChangeWithoutOptionalCallbacks) {
  work_.when("a", {.error = ScriptedWork::rejection()});
  ResolverScript bare = params();
  bare.inputs_changed = nullptr;
  bare.interrupt = nullptr;
  ScriptedEngine engine(bare);
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  EXPECT_EQ(text(get(engine, "b")), "compiled source of b");
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, MissingRecipeIsErrorOfTask) {
  work_.when("a", {.no_recipe = make_error(Code::Unavailable, "no compiler here")});
  ScriptedEngine engine(params());
  const Got got = get(engine, "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().message, "no compiler here");
  EXPECT_EQ(work_.times_begun("a"), 0);
  EXPECT_EQ(states(engine)["a"], State::Failed);
}

TEST_F(EngineTest, ForgottenResultIsScheduledAgain) {
  ScriptedEngine engine(params());
  const ResolveResultPtr first = get(engine, "a").value();
  engine.forget(request("a"));
  engine.forget(request("never heard of"));
  EXPECT_EQ(engine.ready(request("a")), nullptr);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 2);
  EXPECT_EQ(first->artifact.bytes.view(), "compiled source of a") << "existing references stay valid";
}

}  // namespace
}  // namespace kiln::test
