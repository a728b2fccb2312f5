// SPDX-License-Identifier: Apache-2.0
// The behavior of the processes of a host when the compiling process makes no progress. All of them are real processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cache/disk_store.hpp"
#include "cache/local_claims.hpp"
#include "engine/resolver.hpp"
#include "support/fakes/fake_compiler.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;

/// What the holder does when its compiler is called.
enum class Problem : unsigned char { Stops, Hangs };

/// A `FakeCompiler` that stops its process during a compile.
class StoppingCompiler final : public Compiler {
 public:
  explicit StoppingCompiler(const Forked::Side& side) : side_(side) {}
  std::string kind() const override { return inner_.kind(); }
  Result<CompilerIdentity> identity(const RequestContext& /*context*/) override { return inner_.identity({}); }
  Status supports(const Target& target) override { return inner_.supports(target); }
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override {
    side_.say("compiles");
    raise(SIGSTOP);
    return inner_.compile(recipe, context);
  }

 private:
  const Forked::Side& side_;
  FakeCompiler inner_;
};

class HungHolder : public testing::Test {
 protected:
  static constexpr int kWaiters = 12;

  struct Outcome {
    int compiles = 0;
    int failures = 0;
    double slowest_ms = 0;
  };

  /// Starts a process that resolves the unit. `run` gets the resolver, the recipe and the compiler.
  template <class Run>
  Forked process(milliseconds wait, milliseconds compile_time, const Run& run) {
    return Forked([this, wait, compile_time, &run](const Forked::Side& side) {
      FileDigestCache digests{std::string()};
      auto store = DiskStore::open({.root = directory_.path("cache")}, EventEmitter()).value();
      LocalClaims claims = LocalClaims::for_cache(directory_.path("cache"));
      Resolver::Params params;
      params.store = store.get();
      params.claims = &claims;
      params.digests = &digests;
      params.unknown_cost_wait = wait;
      FakeCompiler compiler;
      compiler.takes = compile_time;
      Recipe recipe = recipe_for(compiler, Unit::of_kind("fake", "unit", "a"), Target::sm(80));
      recipe.self_contained = true;
      Resolver resolver(params);
      run(resolver, recipe, compiler, claims, side);
    });
  }

  /// Starts a process that holds the claim of this level and makes no progress until its pipe is closed.
  Forked holder(Problem problem, int level = 0) {
    return process(milliseconds(0), milliseconds(0),
                   [=](Resolver&, const Recipe& recipe, Compiler&, Claims& claims, const Forked::Side& side) {
                     const auto mine = claims.acquire(takeover_of(recipe.request_key(), level), milliseconds(0), {});
                     side.say(mine.outcome == Claims::Outcome::Acquired ? "holds" : "holds nothing: " + mine.reason);
                     if (problem == Problem::Stops) raise(SIGSTOP);
                     (void)side.receive();
                   });
  }

  /// Starts twelve processes that get the unit at the same time.
  Outcome waiters(milliseconds wait, milliseconds compile_time) {
    const auto body = [](Resolver& resolver, const Recipe& recipe, FakeCompiler& compiler, Claims&,
                         const Forked::Side& side) {
      side.say("ready");
      (void)side.receive();
      const auto answer = resolver.get(recipe, compiler, {});
      const bool good = answer && answer->artifact.bytes.view() == "compiled a";
      side.say(std::to_string(compiler.compiles) + " " + (good ? std::to_string(answer->ms) : std::string("failed")));
    };
    std::vector<Forked> all;
    for (int i = 0; i < kWaiters; ++i) all.push_back(process(wait, compile_time, body));
    for (const Forked& waiter : all) EXPECT_EQ(waiter.line(), "ready");
    for (const Forked& waiter : all) waiter.say("go");
    Outcome outcome;
    for (const Forked& waiter : all) {
      std::istringstream line(waiter.line(std::chrono::seconds(120)));
      int compiles = 0;
      double ms = 0;
      outcome.failures += line >> compiles >> ms ? 0 : 1;
      outcome.compiles += compiles;
      outcome.slowest_ms = std::max(outcome.slowest_ms, ms);
    }
    return outcome;
  }

  void expect_one_takeover(const char* what, Problem problem, milliseconds wait) {
    const Forked stuck = holder(problem);
    ASSERT_EQ(stuck.line(), "holds");
    const Outcome outcome = waiters(wait, milliseconds(200));
    std::printf("figure: %s, wait of %lld ms, %d waiters: compiles by waiters=%d slowest=%.0f ms\n", what,
                static_cast<long long>(wait.count()), kWaiters, outcome.compiles, outcome.slowest_ms);
    EXPECT_EQ(outcome.failures, 0);
    EXPECT_EQ(outcome.compiles, 1) << "two with the compile of the holder";
  }

  TemporaryDirectory directory_;
};

TEST_F(HungHolder, StoppedHolderCostsOneMoreCompile) {
  expect_one_takeover("stopped holder", Problem::Stops, std::chrono::seconds(30));
}

TEST_F(HungHolder, StoppedTakeoverIsTakenOver) {
  const Forked takeover = holder(Problem::Stops, 1);
  ASSERT_EQ(takeover.line(), "holds");
  expect_one_takeover("stopped holder and takeover", Problem::Stops, std::chrono::seconds(30));
}

TEST_F(HungHolder, ResumedHolderPublishesAfterTakeover) {
  const auto stops = [](Resolver& resolver, const Recipe& recipe, FakeCompiler&, Claims&, const Forked::Side& side) {
    StoppingCompiler compiler(side);
    const auto answer = resolver.get(recipe, compiler, {});
    side.say(answer ? std::string(answer->artifact.bytes.view()) : answer.error().message);
  };
  const Forked stopped = process(std::chrono::seconds(30), milliseconds(0), stops);
  ASSERT_EQ(stopped.line(), "compiles");
  EXPECT_EQ(waiters(std::chrono::seconds(30), milliseconds(200)).compiles, 1);
  kill(stopped.id(), SIGCONT);
  EXPECT_EQ(stopped.line(), "compiled a");
  EXPECT_EQ(waiters(std::chrono::seconds(30), milliseconds(200)).compiles, 0) << "both published the same entry";
}

TEST_F(HungHolder, HungHolderCostsOneMoreCompile) {
  expect_one_takeover("hung holder", Problem::Hangs, std::chrono::seconds(3));
}

}  // namespace
}  // namespace kiln::test
