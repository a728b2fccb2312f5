// SPDX-License-Identifier: Apache-2.0
// Requests that an engine must check again or remove.
#include "support/fixtures/engine_fixture.hpp"

#include <atomic>
#include <memory>
#include <thread>

namespace kiln::test {
namespace {

// Equal to the units of the requests, but different objects.
std::vector<Unit> units(const Strings& names) {
  std::vector<Unit> made;
  for (const CompileRequest& request : ScriptedWork::requests(names)) made.push_back(request.unit);
  return made;
}

// Returns a script whose results a store has.
ResolverScript with_stored_results(ResolverScript script) {
  script.resolve = [resolve = script.resolve](const CompileRequest& request, const Recipe& recipe,
                                              const RequestContext& context) {
    Result<ResolveResult> answer = resolve(request, recipe, context);
    if (answer) answer->is_stored = true;
    return answer;
  };
  return script;
}

// A fixture in which results are stored and the test decides what `is_current` returns.
class EngineRefresh : public EngineTest {
 protected:
  ResolverScript checking_parts() {
    ResolverScript made = params();
    made.is_current = [this](const CompileRequest&, const ResolveResult&, const RequestContext&) {
      ++checks_;
      return current_.load();
    };
    return made;
  }
  std::atomic<int> checks_{0};
  std::atomic<bool> current_{true};
};

TEST_F(EngineRefresh, CurrentResultStays) {
  ScriptedEngine engine(checking_parts());
  const ResolveResultPtr before = get(engine, "a").value();
  engine.refresh(units({"a", "never heard of"}));
  EXPECT_EQ(engine.ready(request("a")), nullptr);
  EXPECT_EQ(checks_, 0) << "nothing is done before the next request or get";
  EXPECT_EQ(states(engine)["a"], State::Ready);
  EXPECT_EQ(get(engine, "a").value(), before);
  EXPECT_EQ(get(engine, "a").value(), before);
  EXPECT_EQ(checks_, 1);
  EXPECT_EQ(work_.compiles("a"), 1);
}

TEST_F(EngineRefresh, OutdatedResultIsCompiledAgain) {
  ScriptedEngine engine(checking_parts());
  const ResolveResultPtr before = get(engine, "a").value();
  current_ = false;
  engine.refresh(units({"a"}));
  request(engine, {"a"});
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("a"), 2);
  EXPECT_NE(get(engine, "a").value(), before);
  EXPECT_EQ(before->artifact.bytes.view(), "compiled source of a") << "existing references stay valid";
  EXPECT_EQ(engine.status().submitted, 1U);
}

TEST_F(EngineRefresh, RunningTaskServesOnlyExistingWaiters) {
  work_.when("a", {.held = true});
  ScriptedEngine engine(checking_parts());
  auto early = getting(engine, "a");
  EXPECT_TRUE(work_.begun("a"));
  EXPECT_TRUE(clock_.waiting(1));
  engine.refresh(units({"a"}));
  auto late = getting(engine, "a");
  EXPECT_TRUE(clock_.waiting(2));
  work_.open("a");
  const Got first = early.get();
  const Got second = late.get();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_NE(*first, *second);
  EXPECT_EQ(work_.compiles("a"), 2) << "the first may have read the old inputs";
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(engine.status().submitted, 1U) << "the first task was removed";
}

TEST_F(EngineRefresh, FailureIsCleared) {
  work_.when("bad", {.error = ScriptedWork::rejection()});
  ScriptedEngine engine(checking_parts());
  EXPECT_FALSE(get(engine, "bad").has_value());
  work_.when("bad", {});
  engine.refresh(units({"bad"}));
  request(engine, {"bad"});
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(states(engine)["bad"], State::Ready);
}

TEST_F(EngineTest, ReleasedRequestIsRemoved) {
  ScriptedEngine engine(params());
  const ResolveResultPtr answer = get(engine, "a").value();
  const std::weak_ptr<const ResolveResult> watched = get(engine, "b").value();
  ASSERT_TRUE(get(engine, "kept").has_value());
  engine.release(units({"a", "b", "a", "never heard of"}));
  EXPECT_EQ(engine.ready(request("a")), nullptr);
  EXPECT_NE(engine.ready(request("kept")), nullptr);
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(answer->artifact.bytes.view(), "compiled source of a") << "existing references stay valid";
  EXPECT_EQ(engine.status().submitted, 1U);
  EXPECT_EQ(engine.status().released, 2U);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(work_.compiles("a"), 2) << "a later get compiles it again";
}

TEST_F(EngineTest, ReleaseCancelsQueuedAndRunningTasks) {
  work_.when("runs", {.held = true, .stoppable = true});
  ScriptedEngine engine(params(), {.max_threads = 1});
  request(engine, {"runs", "queued"});
  EXPECT_TRUE(work_.begun("runs"));
  auto waiter = getting(engine, "runs");
  EXPECT_TRUE(clock_.waiting(1));
  engine.release(units({"runs", "queued"}));
  EXPECT_EQ(code(waiter.get()), Code::Cancelled);
  EXPECT_TRUE(settles(engine));
  EXPECT_TRUE(eventually([&] { return engine.status().submitted == 0; }));
  EXPECT_EQ(work_.times_begun("queued"), 0);
  work_.open("runs");
  EXPECT_TRUE(get(engine, "runs").has_value());
}

TEST_F(EngineTest, ReleasedParkedTaskIsNotCompiled) {
  work_.when("rooted", {.held = true});
  ScriptedEngine engine(params(), {.max_threads = 2});
  const CompileRequest second = request_equal_units(engine)[1];
  engine.release({&second.unit, 1});
  work_.open("rooted");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.times_begun("rooted"), 1);
  EXPECT_EQ(engine.status().submitted, 2U);
}

TEST_F(EngineTest, LoadedAndStoredResultDropsBytes) {
  ResolverScript storing = with_stored_results(params());
  std::vector<bool> loads;
  storing.resolve = [resolve = storing.resolve, &loads](const CompileRequest& request, const Recipe& recipe,
                                                        const RequestContext& context) {
    loads.push_back(request.load_on_device);
    return resolve(request, recipe, context);
  };
  ScriptedEngine engine(storing);
  CompileRequest loaded = request("a");
  loaded.load_on_device = true;
  ASSERT_TRUE(engine.get(loaded, kForever).has_value());
  engine.drop_bytes(loaded);
  EXPECT_TRUE(engine.get(loaded, kForever).value()->artifact.bytes.empty());
  EXPECT_EQ(states(engine)["a"], State::Ready);
  request(engine, {"a"});
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.compiles("a"), 1);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a") << "a request for the bytes gets them";
  EXPECT_EQ(work_.compiles("a"), 2);
  EXPECT_EQ(loads, (std::vector<bool>{true, false}));
  EXPECT_EQ(engine.status().submitted, 1U);
}

TEST_F(EngineTest, FailedCompileFreesTheResultWithoutBytes) {
  ScriptedEngine engine(with_stored_results(params()));
  CompileRequest loaded = request("a");
  loaded.load_on_device = true;
  ASSERT_TRUE(engine.get(loaded, kForever).has_value());
  engine.drop_bytes(loaded);
  const std::weak_ptr<const ResolveResult> without_bytes = engine.get(loaded, kForever).value();
  EXPECT_FALSE(without_bytes.expired());
  work_.when("a", {.error = ScriptedWork::rejection()});
  EXPECT_EQ(code(get(engine, "a")), Code::CompileFailed);
  EXPECT_TRUE(without_bytes.expired());
}

TEST_F(EngineTest, UnstoredResultKeepsBytes) {
  ScriptedEngine engine(params());
  CompileRequest loaded = request("a");
  loaded.load_on_device = true;
  ASSERT_TRUE(engine.get(loaded, kForever).has_value());
  engine.drop_bytes(loaded);
  EXPECT_FALSE(engine.get(loaded, kForever).value()->artifact.bytes.empty());
}

// All calls against each other. The sanitizers detect errors.
TEST_F(EngineTest, GetsSurviveConcurrentReleaseAndRefresh) {
  ResolverScript real = work_.params();
  real.is_current = [](const CompileRequest&, const ResolveResult&, const RequestContext&) { return true; };
  ScriptedEngine engine(real, {.max_threads = 2});
  const Strings names = {"a", "b", "c", "d"};
  std::atomic<bool> done{false};
  std::atomic<int> good{0};
  std::vector<std::thread> getters;
  for (int i = 0; i < 3; ++i) {
    getters.emplace_back([&, i] {
      for (std::size_t n = static_cast<std::size_t>(i); !done; ++n) {
        const std::string& name = names[n % names.size()];
        (void)engine.ready(request(name));
        const Got got = get(engine, name);
        if (!got) {
          EXPECT_EQ(got.error().code, Code::Cancelled);
        } else {
          EXPECT_EQ(text(got), "compiled source of " + name);
          ++good;
        }
      }
    });
  }
  for (std::size_t n = 0; n < 300 || good < 300; ++n) {
    const Strings one = {names[n % names.size()]};
    if (n % 3 == 0) engine.refresh(units(one));
    if (n % 3 == 1) (void)engine.release(units(one));
    if (n % 3 == 2) request(engine, one);
  }
  done = true;
  for (std::thread& getter : getters) getter.join();
  EXPECT_TRUE(settles(engine));
}

}  // namespace
}  // namespace kiln::test
