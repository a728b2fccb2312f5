// SPDX-License-Identifier: Apache-2.0
#include "support/fixtures/engine_fixture.hpp"

#include <atomic>
#include <filesystem>
#include <thread>

#include "support/processes/no_threads.hpp"

namespace kiln::test {
namespace {

std::ptrdiff_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST_F(EngineTest, UnusedEngineHasNoThread) {
  const std::ptrdiff_t before = threads();
  ScriptedEngine engine(params());
  EXPECT_EQ(engine.ready(request("a")), nullptr);
  engine.cancel(ScriptedWork::requests({"a"}));
  engine.retry(ScriptedWork::requests({"a"}));
  engine.request({});
  EXPECT_EQ(engine.status().submitted, 0U);
  EXPECT_EQ(threads(), before);
  request(engine, {"a"});
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_GT(threads(), before);
}

TEST_F(EngineTest, GetStartsOneThread) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 3});
  const std::ptrdiff_t before = threads();
  auto waiter = getting(engine, "a");
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_EQ(threads(), before + 2) << "the waiter's and the engine's";
  work_.open("a");
  EXPECT_TRUE(waiter.get().has_value());
}

TEST_F(EngineTest, ThreadsAreNamedAndBackgroundWorkHasLowerPriority) {
  const int own = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  if (own > 9) GTEST_SKIP() << "the nice value of this process is already high";
  ScriptedEngine engine(params());
  request(engine, {"a"});
  EXPECT_TRUE(settles(engine));
  ASSERT_FALSE(work_.threads().empty());
  for (const SeenThread& thread : work_.threads()) {
    EXPECT_EQ(thread.name.substr(0, 4), "kiln");
    EXPECT_GT(thread.nice, own);
  }
  const std::size_t background = work_.threads().size();
  ASSERT_TRUE(get(engine, "b").has_value());
  const std::vector<SeenThread> all = work_.threads();
  for (std::size_t i = background; i < all.size(); ++i) {
    EXPECT_EQ(all[i].name.substr(0, 4), "kiln");
    EXPECT_EQ(all[i].nice, own) << "a caller waits for it";
  }
}

TEST_F(EngineTest, RunningTasksDoNotExceedThreadLimit) {
  work_.otherwise({.takes = 1ms});
  ScriptedEngine engine(params(), {.max_threads = 3});
  Strings names;
  for (int i = 0; i < 40; ++i) names.push_back(std::to_string(i));
  request(engine, names);
  EXPECT_TRUE(settles(engine));
  EXPECT_LE(work_.max_at_once(), 3U);
  EXPECT_GE(work_.max_at_once(), 2U);
}

TEST_F(EngineTest, FullQueueDropsWithEventAndGetStillCompiles) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1, .max_queued = 2});
  request(engine, {"a"});
  EXPECT_TRUE(work_.begun("a"));
  request(engine, {"b", "c", "d", "e"});
  EXPECT_EQ(log_.count(Event::Kind::Requested), 3U);
  EXPECT_GE(log_.count(Event::Kind::Cancelled), 1U);
  EXPECT_EQ(engine.status().pending, 3U);
  EXPECT_EQ(text(get(engine, "d")), "compiled source of d");
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("c"), 1);
  EXPECT_EQ(work_.compiles("e"), 0);
  request(engine, {"e"});
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("e"), 1) << "the queue has capacity again";
}

TEST_F(EngineTest, FullQueueReportsNothingForExistingTasks) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1, .max_queued = 1});
  const std::vector<CompileRequest> requests = ScriptedWork::requests({"a", "queued", "ready"});
  ASSERT_TRUE(engine.get(requests[2], kForever).has_value());
  engine.request(std::span(requests).first(1));
  EXPECT_TRUE(work_.begun("a"));
  for (int i = 0; i < 3; ++i) engine.request(requests);
  EXPECT_EQ(log_.count(Event::Kind::Cancelled), 0U);
  request(engine, {"dropped"});
  EXPECT_EQ(log_.count(Event::Kind::Cancelled), 1U);
  EXPECT_EQ(engine.status().submitted, 3U) << "dropped requests use no memory";
  work_.open("a");
}

TEST_F(EngineTest, GetSucceedsWithoutThreads) {
  ScriptedEngine engine(params());
  {
    const NoThreads no_threads;
    request(engine, {"a", "b"});
    engine.request(ScriptedWork::requests({"c", "d"}), Priority::Foreground);
    EXPECT_EQ(code(get(engine, "e", 0ns)), Code::TimedOut);
    EXPECT_TRUE(work_.begun_in_order().empty()) << "no caller has waited yet";
    EXPECT_EQ(text(get(engine, "b")), "compiled source of b");
    EXPECT_EQ(work_.times_begun("a"), 0);
  }
  request(engine, {"f"});
  EXPECT_TRUE(settles(engine)) << "the rest runs when threads are available again";
}

TEST_F(EngineTest, BlockingCompileEventNamesCaller) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params());
  const CompileRequest wanted = request("a");
  const int line = __LINE__ + 1;
  auto waiter = std::async(std::launch::async, [&] { return engine.get(wanted, kForever); });
  EXPECT_TRUE(clock_.waiting(1));
  work_.open("a");
  ASSERT_TRUE(waiter.get().has_value());
  const std::vector<Event> reported = log_.of(Event::Kind::BlockingCompile);
  ASSERT_EQ(reported.size(), 1U);
  EXPECT_EQ(reported[0].unit, "a");
  EXPECT_EQ(reported[0].target, "sm_80");
  EXPECT_NE(reported[0].message.find("engine_limits_test.cpp:" + std::to_string(line)), std::string::npos)
      << reported[0].message;
}

TEST_F(EngineTest, BlockingCompileEventIsEmittedForFailureButNotForTimeout) {
  work_.when("bad", {.error = make_error(Code::CompileFailed, "no")});
  work_.when("slow", {.held = true});
  ScriptedEngine engine(params());
  EXPECT_EQ(code(get(engine, "slow", 0ns)), Code::TimedOut);
  EXPECT_EQ(log_.count(Event::Kind::BlockingCompile), 0U);
  EXPECT_EQ(code(get(engine, "bad")), Code::CompileFailed);
  ASSERT_EQ(log_.count(Event::Kind::BlockingCompile), 1U);
  EXPECT_NE(log_.of(Event::Kind::BlockingCompile)[0].message.find("a compile that failed"), std::string::npos);
  work_.open("slow");
}

TEST_F(EngineTest, PollReturnsFailureThatGetWouldRetry) {
  work_.when("a", {.held = true, .error = make_error(Code::Unavailable, "no compiler here")});
  ScriptedEngine engine(params());
  const auto poll = [&](std::chrono::nanoseconds first) {
    return engine.Engine::get(request("a"), Deadline(clock_, 0ns, nullptr, first));
  };
  const auto first = clock_.steady();
  EXPECT_EQ(code(poll(first)), Code::TimedOut);
  clock_.advance(1s);
  EXPECT_EQ(code(poll(first)), Code::TimedOut);
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(code(poll(first)), Code::Unavailable);
  EXPECT_EQ(code(poll(clock_.steady())), Code::Unavailable) << "each of several callers gets it";
  EXPECT_EQ(work_.compiles("a"), 1);

  clock_.advance(1s);
  work_.when("a", {.held = true});
  EXPECT_EQ(code(poll(clock_.steady())), Code::TimedOut) << "the failure is older than the poll";
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(text(poll(first)), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 2);
}

TEST_F(EngineTest, PollRunsBeforeBackgroundTasks) {
  work_.otherwise({.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"running"});
  EXPECT_TRUE(work_.begun("running"));
  request(engine, {"background"});
  EXPECT_EQ(code(engine.Engine::get(request("a"), Deadline(clock_, 0ns, nullptr, clock_.steady()))), Code::TimedOut);
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_EQ(work_.times_begun("background"), 0);
}

TEST_F(EngineTest, CompileKnowsNumberOfSimilarQueuedUnits) {
  std::vector<std::size_t> similar;
  ResolverScript recording = params();
  recording.resolve = [resolve = recording.resolve, &similar](const CompileRequest& request, const Recipe& recipe,
                                                              const RequestContext& context) {
    similar.push_back(context.queued_similar);
    return resolve(request, recipe, context);
  };
  work_.when("first", {.held = true});
  ScriptedEngine engine(recording, {.max_threads = 1});
  request(engine, {"first"});
  EXPECT_TRUE(work_.begun("first"));
  const std::vector<CompileRequest> queued = {request("a"), request("b"), ScriptedWork::request("other target", 90)};
  engine.request(queued);
  work_.open("first");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(similar, (std::vector<std::size_t>{0, 1, 0, 0}));
}

TEST_F(EngineTest, EqualQueuedUnitsCompileOnce) {
  work_.when("first", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"first"});
  EXPECT_TRUE(work_.begun("first"));
  request(engine, {"a", "a", "a"});
  auto waiter = getting(engine, "a");  // finds the queued ones by content
  EXPECT_TRUE(clock_.waiting(1));
  work_.open("first");
  EXPECT_EQ(text(waiter.get()), "compiled source of a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.times_begun("a"), 1);
}

TEST_F(EngineTest, TaskThatTimedOutIsNotTakenForOneThatContinues) {
  work_.when("a", {.error = make_error(Code::TimedOut, "nvcc timed out")});
  ScriptedEngine engine(params());
  const Got got = get(engine, "a");
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, Code::Io);
  EXPECT_EQ(got.error().message, "nvcc timed out");
}

TEST_F(EngineTest, NoBlockingCompileEventForTierHitOrReadyUnit) {
  work_.when("hit", {.origin = Origin::Disk});
  ScriptedEngine engine(params());
  ASSERT_TRUE(get(engine, "hit").has_value());
  request(engine, {"warm"});
  EXPECT_TRUE(settles(engine));
  ASSERT_TRUE(get(engine, "warm").has_value());
  EXPECT_EQ(log_.count(Event::Kind::BlockingCompile), 0U);
}

TEST_F(EngineTest, ExceptionOfCallbackIsError) {
  work_.when("bad", {.throws = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"bad", "a"});
  EXPECT_FALSE(get(engine, "bad").has_value());
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a") << "its thread continues";

  ResolverScript throwing = params();
  throwing.recipe = [](const CompileRequest&) -> Result<Recipe> { throw std::bad_alloc(); };
  ScriptedEngine without_recipe(throwing);
  EXPECT_FALSE(get(without_recipe, "a").has_value());
  throwing.recipe = [](const CompileRequest&) -> Result<Recipe> { throw 5; };  // not a std::exception
  ScriptedEngine without_limits(throwing);
  const auto thrown = get(without_limits, "a");
  ASSERT_FALSE(thrown.has_value());
  EXPECT_EQ(thrown.error().code, Code::Internal);

  throwing = params();
  throwing.inputs_changed = [](const Recipe&) -> bool { throw std::bad_alloc(); };
  throwing.interrupt = [] { throw std::bad_alloc(); };
  work_.when("refused", {.error = ScriptedWork::rejection()});
  ScriptedEngine engine_of_throwers(throwing);
  EXPECT_FALSE(get(engine_of_throwers, "refused").has_value());
  EXPECT_FALSE(get(engine_of_throwers, "refused").has_value());
}

TEST_F(EngineTest, StatusReportsStateOfEachRequest) {
  work_.when("bad", {.error = ScriptedWork::rejection()});
  work_.when("hit", {.origin = Origin::Disk});
  work_.when("running", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"good", "bad", "hit", "running", "queued", "dropped"});
  EXPECT_TRUE(work_.begun("running"));
  engine.cancel(ScriptedWork::requests({"dropped"}));
  clock_.advance(7ms);
  const SessionStatus status = engine.status();
  EXPECT_EQ(status.submitted, 6U);
  EXPECT_EQ(status.compiled, 1U);
  EXPECT_EQ(status.cached, 1U);
  EXPECT_EQ(status.pending, 2U);
  EXPECT_EQ(status.failed, 1U);
  EXPECT_EQ(status.cancelled, 1U);
  EXPECT_EQ(status.wall_ms, 7);
  ASSERT_EQ(status.units.size(), 6U);
  const State expected[] = {State::Ready, State::Failed, State::Ready, State::Running, State::Queued, State::Cancelled};
  for (std::size_t i = 0; i < status.units.size(); ++i) EXPECT_EQ(status.units[i].state, expected[i]) << i;
  EXPECT_EQ(status.units[0].unit, "good");
  EXPECT_EQ(status.units[0].kind, "fake");
  EXPECT_EQ(status.units[0].target, "sm_80");
  EXPECT_EQ(status.units[0].origin, Origin::Compiled);
  EXPECT_EQ(status.units[2].origin, Origin::Disk);
  EXPECT_EQ(status.units[1].error, "it does not compile");
  work_.open("running");
  EXPECT_TRUE(settles(engine));
  clock_.advance(1s);
  EXPECT_EQ(engine.status().wall_ms, 7) << "nothing changed since";
  EXPECT_EQ(engine.status().units[3].ms, 7);
}

// Returns true if the totals of a snapshot match its list.
bool adds_up(const SessionStatus& status) {
  std::map<State, std::size_t> count;
  std::size_t compiled = 0;
  for (const UnitStatus& unit : status.units) {
    ++count[unit.state];
    if (unit.state == State::Ready && unit.origin == Origin::Compiled) ++compiled;
  }
  return status.submitted == status.units.size() && status.compiled == compiled &&
         status.cached == count[State::Ready] - compiled && status.failed == count[State::Failed] &&
         status.pending == count[State::Queued] + count[State::Running] && status.cancelled == count[State::Cancelled];
}

TEST_F(EngineTest, SnapshotsAreConsistentWhileThreadsWork) {
  work_.when("bad", {.error = ScriptedWork::rejection()});
  work_.when("hit", {.origin = Origin::Memory});
  ScriptedEngine engine(work_.params());
  std::atomic<int> at_work{8};
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([&engine, &at_work, number] {
      for (int i = 0; i < 40; ++i) {
        const std::string name = std::to_string((number * 7 + i) % 60);
        request(engine, {name, "bad", "hit", name + "x"});
        (void)get(engine, i % 2 == 0 ? name : "bad", 10ms);
        engine.cancel(ScriptedWork::requests({name + "x"}));
        if (i % 8 == 0) engine.retry(ScriptedWork::requests({"bad"}));
        if (i % 8 == 4) engine.forget(request("hit"));
      }
      --at_work;
    });
  }
  int snapshots = 0;
  bool right = true;
  while (at_work > 0 && right) {
    right = adds_up(engine.status());
    ++snapshots;
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(right) << "snapshot " << snapshots;
}

TEST_F(EngineTest, BackgroundTasksOfAFleetMemberStartAtItsPlace) {
  work_.when("a", {.held = true});
  ResolverScript script = params();
  script.fleet_place = FleetPlace(0.5);
  ScriptedEngine engine(script, {.max_threads = 1});
  request(engine, {"a"});
  EXPECT_TRUE(work_.begun("a"));
  const std::vector<CompileRequest> requests = ScriptedWork::requests({"b", "c", "d", "e", "f", "g"});
  engine.request(requests);
  engine.request(requests);  // a repeated request does not change the order
  engine.cancel({&requests[3], 1});
  EXPECT_EQ(text(engine.get(requests[1], kForever)), "compiled source of c");  // a caller waits for it
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.begun_in_order(), (Strings{"a", "c", "f", "g", "d", "b"}));
}

}  // namespace
}  // namespace kiln::test
