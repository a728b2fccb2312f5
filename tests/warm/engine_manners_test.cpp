#include "support/engine_fixture.hpp"

#include <atomic>
#include <filesystem>
#include <thread>

namespace kiln::test {
namespace {

TEST_F(EngineTest, AnEngineThatWasNeverAskedHasNoThread) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto before = threads();
  Engine engine(parts());
  EXPECT_EQ(engine.ready(order("a")), nullptr);
  engine.cancel(ScriptedWork::orders({"a"}));
  engine.retry(ScriptedWork::orders({"a"}));
  engine.request({});
  EXPECT_EQ(engine.status().submitted, 0U);
  EXPECT_EQ(threads(), before);
  request(engine, {"a"});
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_GT(threads(), before);
}

TEST_F(EngineTest, ItsThreadsHaveItsNameAndBackgroundWorkALowerPriority) {
  const int own = getpriority(PRIO_PROCESS, static_cast<id_t>(gettid()));
  if (own > 9) GTEST_SKIP() << "this process has little priority to give up";
  Engine engine(parts());
  request(engine, {"a"});
  EXPECT_TRUE(settles(engine));
  ASSERT_FALSE(work_.threads().empty());
  for (const SeenThread& thread : work_.threads()) {
    EXPECT_EQ(thread.name.substr(0, 4), "kiln");
    EXPECT_GT(thread.nice, own);
  }
  const std::size_t background = work_.threads().size();
  ASSERT_TRUE(get(engine, "b").ok());
  const std::vector<SeenThread> all = work_.threads();
  for (std::size_t i = background; i < all.size(); ++i) {
    EXPECT_EQ(all[i].name.substr(0, 4), "kiln");
    EXPECT_EQ(all[i].nice, own) << "somebody waits for it";
  }
}

TEST_F(EngineTest, NoMoreFlightsRunAtOnceThanItMayHaveThreads) {
  work_.otherwise({.takes = 1ms});
  Engine engine(parts(), {.most_threads = 3});
  Strings names;
  for (int i = 0; i < 40; ++i) names.push_back(std::to_string(i));
  request(engine, names);
  EXPECT_TRUE(settles(engine));
  EXPECT_LE(work_.most_at_once(), 3U);
  EXPECT_GE(work_.most_at_once(), 2U);
}

TEST_F(EngineTest, AFullQueueDropsWithAnEventAndAGetStillMakesIt) {
  work_.when("a", {.held = true});
  Engine engine(parts(), {.most_threads = 1, .most_queued = 2});
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
  EXPECT_EQ(work_.compiles("e"), 1) << "there is room again";
}

TEST_F(EngineTest, AFullQueueHasNothingToSayOfWhatIsAlreadyThere) {
  work_.when("a", {.held = true});
  Engine engine(parts(), {.most_threads = 1, .most_queued = 1});
  const std::vector<Order> orders = ScriptedWork::orders({"a", "queued", "ready"});
  ASSERT_TRUE(engine.get(orders[2], kForever).ok());
  engine.request(std::span(orders).first(1));
  EXPECT_TRUE(work_.begun("a"));
  for (int i = 0; i < 3; ++i) engine.request(orders);
  EXPECT_EQ(log_.count(Event::Kind::Cancelled), 0U);
  request(engine, {"dropped"});
  EXPECT_EQ(log_.count(Event::Kind::Cancelled), 1U);
  EXPECT_EQ(engine.status().submitted, 3U) << "what is dropped costs no memory";
  work_.open("a");
}

// While it lives no thread can be started: the memory for its stack is not to be had.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge = before_;
    pthread_attr_setstacksize(&huge, std::size_t{1} << 46);
    pthread_setattr_default_np(&huge);
  }
  ~NoThreads() { pthread_setattr_default_np(&before_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_;
};

TEST_F(EngineTest, WhereNoThreadCanBeHadAGetIsStillAnswered) {
  Engine engine(parts());
  {
    const NoThreads no_threads;
    request(engine, {"a", "b"});
    engine.request(ScriptedWork::orders({"c", "d"}), Priority::Waited);
    EXPECT_EQ(code(get(engine, "e", 0ns)), Code::TimedOut);
    EXPECT_TRUE(work_.begun_in_order().empty()) << "nobody has waited yet";
    EXPECT_EQ(text(get(engine, "b")), "compiled source of b");
    EXPECT_EQ(work_.times_begun("a"), 0);
  }
  request(engine, {"f"});
  EXPECT_TRUE(settles(engine)) << "what was left is done when threads are to be had again";
}

TEST_F(EngineTest, AHotCompileNamesWhoAsked) {
  work_.when("a", {.held = true});
  Engine engine(parts());
  const Order wanted = order("a");
  const int line = __LINE__ + 1;
  auto waiter = std::async(std::launch::async, [&] { return engine.get(wanted, kForever); });
  EXPECT_TRUE(clock_.waiting(1));
  work_.open("a");
  ASSERT_TRUE(waiter.get().ok());
  const std::vector<Event> told = log_.of(Event::Kind::HotCompile);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].unit, "a");
  EXPECT_EQ(told[0].target, "sm_80");
  EXPECT_NE(told[0].message.find("engine_manners_test.cpp:" + std::to_string(line)), std::string::npos)
      << told[0].message;
}

TEST_F(EngineTest, AHotCompileIsToldOfOneThatFailedAndNotOfAWaitThatWasTooShort) {
  work_.when("bad", {.error = failure(Code::CompileFailed, "no")});
  work_.when("slow", {.held = true});
  Engine engine(parts());
  EXPECT_EQ(code(get(engine, "slow", 0ns)), Code::TimedOut);
  EXPECT_EQ(log_.count(Event::Kind::HotCompile), 0U);
  EXPECT_EQ(code(get(engine, "bad")), Code::CompileFailed);
  ASSERT_EQ(log_.count(Event::Kind::HotCompile), 1U);
  EXPECT_NE(log_.of(Event::Kind::HotCompile)[0].message.find("a compile that failed"), std::string::npos);
  work_.open("slow");
}

TEST_F(EngineTest, NoHotCompileIsToldOfWhatATierHadOrWasReady) {
  work_.when("hit", {.origin = Origin::Disk});
  Engine engine(parts());
  ASSERT_TRUE(get(engine, "hit").ok());
  request(engine, {"warm"});
  EXPECT_TRUE(settles(engine));
  ASSERT_TRUE(get(engine, "warm").ok());
  EXPECT_EQ(log_.count(Event::Kind::HotCompile), 0U);
}

TEST_F(EngineTest, AnExceptionOfAPartIsAnError) {
  work_.when("bad", {.throws = true});
  Engine engine(parts(), {.most_threads = 1});
  request(engine, {"bad", "a"});
  EXPECT_FALSE(get(engine, "bad").ok());
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a") << "its thread goes on";

  Engine::Parts throwing = parts();
  throwing.recipe = [](const Order&) -> Result<Recipe> { throw std::bad_alloc(); };
  Engine without_recipe(throwing);
  EXPECT_FALSE(get(without_recipe, "a").ok());
  throwing.recipe = [](const Order&) -> Result<Recipe> { throw 5; };  // what is no std::exception
  Engine without_manners(throwing);
  const auto thrown = get(without_manners, "a");
  ASSERT_FALSE(thrown.ok());
  EXPECT_EQ(thrown.error().code, Code::Internal);

  throwing = parts();
  throwing.changed_since_failure = [](const Recipe&) -> bool { throw std::bad_alloc(); };
  throwing.interrupt = [] { throw std::bad_alloc(); };
  work_.when("refused", {.error = ScriptedWork::refusal()});
  Engine engine_of_throwers(throwing);
  EXPECT_FALSE(get(engine_of_throwers, "refused").ok());
  EXPECT_FALSE(get(engine_of_throwers, "refused").ok());
}

TEST_F(EngineTest, StatusSaysWhatHasBecomeOfEachOrder) {
  work_.when("bad", {.error = ScriptedWork::refusal()});
  work_.when("hit", {.origin = Origin::Disk});
  work_.when("running", {.held = true});
  Engine engine(parts(), {.most_threads = 1});
  request(engine, {"good", "bad", "hit", "running", "queued", "dropped"});
  EXPECT_TRUE(work_.begun("running"));
  engine.cancel(ScriptedWork::orders({"dropped"}));
  clock_.advance(7ms);
  const SessionStatus status = engine.status();
  EXPECT_EQ(status.submitted, 6U);
  EXPECT_EQ(status.compiled, 1U);
  EXPECT_EQ(status.found, 1U);
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
  EXPECT_EQ(engine.status().wall_ms, 7) << "nothing has happened since";
  EXPECT_EQ(engine.status().units[3].ms, 7);
}

// Whether the sums of a snapshot are those of its list.
bool adds_up(const SessionStatus& status) {
  std::map<State, std::size_t> count;
  std::size_t compiled = 0;
  for (const UnitStatus& unit : status.units) {
    ++count[unit.state];
    if (unit.state == State::Ready && unit.origin == Origin::Compiled) ++compiled;
  }
  return status.submitted == status.units.size() && status.compiled == compiled &&
         status.found == count[State::Ready] - compiled && status.failed == count[State::Failed] &&
         status.pending == count[State::Queued] + count[State::Running] && status.cancelled == count[State::Cancelled];
}

TEST_F(EngineTest, EverySnapshotAddsUpWhileThreadsWork) {
  work_.when("bad", {.error = ScriptedWork::refusal()});
  work_.when("hit", {.origin = Origin::Memory});
  Engine engine(work_.parts());
  std::atomic<int> at_work{8};
  std::vector<std::thread> threads;
  for (int number = 0; number < 8; ++number) {
    threads.emplace_back([&engine, &at_work, number] {
      for (int i = 0; i < 40; ++i) {
        const std::string name = std::to_string((number * 7 + i) % 60);
        request(engine, {name, "bad", "hit", name + "x"});
        (void)get(engine, i % 2 == 0 ? name : "bad", 10ms);
        engine.cancel(ScriptedWork::orders({name + "x"}));
        if (i % 8 == 0) engine.retry(ScriptedWork::orders({"bad"}));
        if (i % 8 == 4) engine.forget(order("hit"));
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

}  // namespace
}  // namespace kiln::test
