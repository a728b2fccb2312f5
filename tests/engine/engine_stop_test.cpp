// SPDX-License-Identifier: Apache-2.0
#include "support/fixtures/engine_fixture.hpp"

namespace kiln::test {
namespace {

TEST_F(EngineTest, CanceledQueuedTaskNeverRuns) {
  work_.when("long", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"long"});
  EXPECT_TRUE(work_.begun("long"));
  request(engine, {"a", "b"});
  engine.cancel(ScriptedWork::requests({"a", "never heard of"}));
  EXPECT_EQ(states(engine)["a"], State::Cancelled);
  EXPECT_EQ(log_.count(Event::Kind::Cancelled), 1U);
  work_.open("long");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.begun_in_order(), (Strings{"long", "b"}));

  request(engine, {"a"});
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("a"), 1) << "a later request schedules it again";
}

TEST_F(EngineTest, WaiterOfCanceledQueuedTaskIsNotified) {
  work_.otherwise({.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  auto first = getting(engine, "first");
  EXPECT_TRUE(work_.begun("first"));
  auto queued = getting(engine, "queued");
  EXPECT_TRUE(clock_.waiting(2));
  engine.cancel(ScriptedWork::requests({"queued"}));
  EXPECT_EQ(code(queued.get()), Code::Cancelled);
  work_.open("first");
  EXPECT_TRUE(first.get().has_value());
  EXPECT_EQ(work_.times_begun("queued"), 0);
  work_.open("queued");
  EXPECT_TRUE(get(engine, "queued").has_value());
}

TEST_F(EngineTest, CancelDoesNotAffectOtherUnitsOfSameName) {
  work_.when("long", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"long"});
  EXPECT_TRUE(work_.begun("long"));
  const auto named = [](const char* source) {
    return CompileRequest{Unit::of_kind("fake", "name", source), Target::sm(80)};
  };
  const CompileRequest before = named("wanted");
  EXPECT_EQ(code(engine.get(before, 0ns)), Code::TimedOut);
  engine.cancel({&before, 1});
  const std::vector<CompileRequest> requests = {named("wanted"), named("not wanted")};
  engine.request(requests);
  const CompileRequest other = named("not wanted");
  engine.cancel({&other, 1});
  work_.open("long");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles(before), 1);
  EXPECT_EQ(work_.compiles(other), 0);
}

TEST_F(EngineTest, RunningTaskKeepsResultAfterCancel) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params());
  auto waiter = getting(engine, "a");
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_TRUE(clock_.waiting(1));
  engine.cancel(ScriptedWork::requests({"a"}));
  EXPECT_EQ(code(waiter.get()), Code::Cancelled);
  work_.open("a");
  ASSERT_TRUE(eventually([&] { return engine.ready(request("a")) != nullptr; }));
  EXPECT_EQ(text(get(engine, "a", 0ns)), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, GetAfterCancelJoinsRunningTask) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(params());
  request(engine, {"a"});
  EXPECT_TRUE(work_.begun("a"));
  engine.cancel(ScriptedWork::requests({"a"}));
  auto waiter = getting(engine, "a");
  EXPECT_TRUE(clock_.waiting(1));
  work_.open("a");
  EXPECT_EQ(text(waiter.get()), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineTest, CancelEndsInterruptibleCompileAndFreesThread) {
  work_.when("a", {.held = true, .stoppable = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"a", "b"});
  EXPECT_TRUE(work_.begun("a"));
  engine.cancel(ScriptedWork::requests({"a"}));
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(states(engine)["a"], State::Cancelled);
  EXPECT_NE(engine.ready(request("b")), nullptr) << "the thread continued";
  work_.open("a");
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a") << "a later get schedules it again";
}

TEST_F(EngineTest, RequestDuringCanceledCompileStartsAnother) {
  work_.when("a", {.held = true, .stoppable = true});
  ScriptedEngine engine(params());
  for (int round = 0; round < 50; ++round) {
    const int begun = work_.times_begun("a");
    request(engine, {"a"});
    EXPECT_TRUE(eventually([&] { return work_.times_begun("a") == begun + 1; }));
    engine.cancel(ScriptedWork::requests({"a"}));
    auto waiter = getting(engine, "a");
    EXPECT_TRUE(clock_.waiting(1));
    // Canceled again, at once or when it runs again. In both cases it is no longer needed.
    if (round % 2 == 0) {
      EXPECT_TRUE(eventually([&] { return work_.times_begun("a") == begun + 2; }));
    }
    engine.cancel(ScriptedWork::requests({"a"}));
    EXPECT_EQ(code(waiter.get()), Code::Cancelled);
    EXPECT_TRUE(settles(engine));
  }
  auto waiter = getting(engine, "a");
  work_.open("a");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(text(waiter.get()), "compiled source of a");
}

TEST_F(EngineTest, CompileWithWaitingEqualRequestIsNotEnded) {
  work_.when("rooted", {.held = true, .stoppable = true});
  ScriptedEngine engine(params(), {.max_threads = 2});
  const auto [first, second] = request_equal_units(engine);
  engine.cancel({&first, 1});
  work_.open("rooted");
  EXPECT_TRUE(settles(engine));
  EXPECT_NE(engine.ready(first), nullptr);
  EXPECT_NE(engine.ready(second), nullptr);
}

TEST_F(EngineTest, CancelOfReadyOrFailedTaskChangesNothing) {
  work_.when("bad", {.error = ScriptedWork::rejection()});
  ScriptedEngine engine(params());
  const ResolveResultPtr answer = get(engine, "a").value();
  EXPECT_FALSE(get(engine, "bad").has_value());
  engine.cancel(ScriptedWork::requests({"a", "bad"}));
  EXPECT_EQ(engine.ready(request("a")), answer.get());
  EXPECT_EQ(code(get(engine, "bad", 0ns)), Code::CompileFailed);
}

TEST_F(EngineTest, StopWakesWaitersAndCancelsLaterCalls) {
  work_.otherwise({.held = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"background", "never begun"});
  EXPECT_TRUE(work_.begun("background"));
  auto running = getting(engine, "running");
  EXPECT_TRUE(work_.begun("running"));
  auto queued = getting(engine, "queued");
  auto joined = getting(engine, "background");
  EXPECT_TRUE(clock_.waiting(3));
  engine.stop();
  for (auto* waiter : {&running, &queued, &joined}) EXPECT_EQ(code(waiter->get()), Code::Cancelled);
  EXPECT_EQ(work_.interrupts(), 1);
  EXPECT_EQ(states(engine)["running"], State::Cancelled);
  EXPECT_EQ(engine.status().failed, 0U);
  EXPECT_EQ(work_.times_begun("queued") + work_.times_begun("never begun"), 0);
  EXPECT_EQ(engine.status().pending, 0U);

  const std::size_t before = work_.begun_in_order().size();
  request(engine, {"later"});
  EXPECT_EQ(code(get(engine, "later")), Code::Cancelled);
  EXPECT_EQ(code(get(engine, "later", 0ns)), Code::Cancelled);
  engine.cancel(ScriptedWork::requests({"later"}));
  engine.retry(ScriptedWork::requests({"running"}));
  engine.forget(request("running"));
  engine.stop();
  EXPECT_EQ(work_.begun_in_order().size(), before);
}

TEST_F(EngineTest, ReadyResultsStayReadableAfterStop) {
  ScriptedEngine engine(params());
  const ResolveResultPtr answer = get(engine, "a").value();
  engine.stop();
  EXPECT_EQ(engine.ready(request("a")), answer.get());
  EXPECT_EQ(engine.status().compiled, 1U);
}

TEST_F(EngineTest, StopWaitsForUninterruptibleCompile) {
  work_.when("a", {.held = true});
  ResolverScript stubborn = params();
  stubborn.interrupt = nullptr;
  ScriptedEngine engine(stubborn);
  auto waiter = getting(engine, "a");
  EXPECT_TRUE(work_.begun("a"));
  auto stopped = std::async(std::launch::async, [&] { engine.stop(); });
  EXPECT_EQ(code(waiter.get()), Code::Cancelled) << "waiters are woken at once";
  EXPECT_EQ(stopped.wait_for(20ms), std::future_status::timeout);
  work_.open("a");
  stopped.get();
  EXPECT_TRUE(work_.running().empty());
}

TEST_F(EngineTest, CompileDoesNotStartDuringStop) {
  std::promise<void> entered;
  std::promise<void> leave;
  ResolverScript slow = params();
  slow.recipe = [&, recipe = slow.recipe](const CompileRequest& request) {
    entered.set_value();
    leave.get_future().wait();
    return recipe(request);
  };
  ScriptedEngine engine(slow);
  auto waiter = getting(engine, "a");
  entered.get_future().wait();
  auto stopped = std::async(std::launch::async, [&] { engine.stop(); });
  EXPECT_EQ(code(waiter.get()), Code::Cancelled);
  leave.set_value();
  stopped.get();
  EXPECT_EQ(work_.times_begun("a"), 0) << "interrupt was already called and would not end it";
}

TEST_F(EngineTest, TwoThreadsCanStopConcurrently) {
  work_.otherwise({.takes = 1ms});
  for (int round = 0; round < 20; ++round) {
    ScriptedEngine engine(params(), {.max_threads = 2});
    request(engine, {"a", "b", "c", "d", "e"});
    auto other = std::async(std::launch::async, [&] { engine.stop(); });
    engine.stop();
    EXPECT_TRUE(work_.running().empty());
    other.get();
  }
}

}  // namespace
}  // namespace kiln::test
