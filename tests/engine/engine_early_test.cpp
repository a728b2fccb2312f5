// SPDX-License-Identifier: Apache-2.0
// Compiles that an engine starts before the compiler is identified.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "support/fixtures/engine_fixture.hpp"

namespace kiln::test {
namespace {

struct Started final : EarlyCompile {
  explicit Started(std::atomic<int>& running) : running_(running) { ++running_; }
  ~Started() override { --running_; }
  std::atomic<int>& running_;
};

class EngineEarly : public testing::Test {
 protected:
  std::unique_ptr<ScriptedEngine> engine() {
    ResolverScript script = work_.params();
    script.start_early = [this](const CompileRequest&) {
      ++started_;
      return std::make_unique<Started>(running_);
    };
    auto resolve = script.resolve;
    script.resolve = [this, resolve](const CompileRequest& request, const Recipe& recipe,
                                     const RequestContext& context) {
      passed_on_ += context.early != nullptr ? 1 : 0;
      return resolve(request, recipe, context);
    };
    return std::make_unique<ScriptedEngine>(std::move(script), Engine::Options{.max_threads = 2});
  }

  ScriptedWork work_;
  std::atomic<int> started_{0};
  std::atomic<int> running_{0};
  std::atomic<int> passed_on_{0};
};

TEST_F(EngineEarly, OneTaskStartsEarlyAndEndsItWithTheTask) {
  const auto engine = this->engine();
  ASSERT_TRUE(engine->get(ScriptedWork::request("one"), 20s).has_value());
  EXPECT_EQ(started_, 1);
  EXPECT_EQ(passed_on_, 1);
  EXPECT_TRUE(eventually([&] { return running_ == 0; }));
}

TEST_F(EngineEarly, SecondTaskDoesNotStartEarlyWhileTheFirstRuns) {
  work_.when("one", {.held = true});
  const auto engine = this->engine();
  engine->request(ScriptedWork::requests({"one"}));
  ASSERT_TRUE(eventually([&] { return passed_on_ == 1; }));
  ASSERT_TRUE(engine->get(ScriptedWork::request("two"), 20s).has_value());
  EXPECT_EQ(started_, 1);
  work_.open("one");
}

}  // namespace
}  // namespace kiln::test
