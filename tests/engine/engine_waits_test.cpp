// SPDX-License-Identifier: Apache-2.0
// A wait for the compile of another process must not block the engine's own compiles.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "cache/local_claims.hpp"
#include "support/fakes/memory_store.hpp"
#include "support/fixtures/engine_fixture.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/no_threads.hpp"

namespace kiln::test {
namespace {

/// An engine with one thread per priority and the real resolver. The test holds claims as another party.
class EngineThatWaits : public testing::Test {
 protected:
  EngineThatWaits() {
    params_.store = &store_;
    params_.digests = &digests_;
    params_.emitter = log_.emitter();
    params_.claims = &claims_;
  }

  static CompileRequest request(const std::string& name) { return ScriptedWork::request(name); }
  Recipe recipe(const CompileRequest& request) {
    return {request.unit, request.target, compiler_.identity({}).value(), "/", true};
  }

  std::unique_ptr<ScriptedEngine> engine() {
    resolver_ = std::make_unique<Resolver>(params_);
    ResolverScript params;
    params.recipe = [this](const CompileRequest& request) -> Result<Recipe> { return recipe(request); };
    params.resolve = [this](const CompileRequest&, const Recipe& recipe, const RequestContext& context) {
      return resolver_->get(recipe, compiler_, context);
    };
    params.emitter = log_.emitter();
    return std::make_unique<ScriptedEngine>(std::move(params), Engine::Options{.max_threads = 1});
  }
  /// Acquires the claim of this unit as another party.
  std::unique_ptr<Claim> held_elsewhere(const std::string& name) {
    LocalClaims other(directory_.path());
    Claims::AcquireResult answer = other.acquire(recipe(request(name)).request_key(), 0ms, {});
    EXPECT_EQ(answer.outcome, Claims::Outcome::Acquired) << answer.reason;
    return std::move(answer.claim);
  }
  bool begun(const std::string& name) {
    return eventually([&] {
      for (const Event& event : log_.of(Event::Kind::Miss)) {
        if (event.unit == name) return true;
      }
      return false;
    });
  }
  static std::string text(const Result<ResolveResultPtr>& got) {
    return got ? std::string((*got)->artifact.bytes.view()) : got.error().message;
  }

  TemporaryDirectory directory_;
  MemoryStore store_;
  FileDigestCache digests_{std::string()};
  EventLog log_;
  FakeCompiler compiler_;
  LocalClaims claims_{directory_.path()};
  Resolver::Params params_;
  std::unique_ptr<Resolver> resolver_;
};

TEST_F(EngineThatWaits, BackgroundUnitIsNotBlockedByAnotherProcess) {
  auto claim = held_elsewhere("held");
  const auto engine = this->engine();
  engine->request(ScriptedWork::requests({"held"}));
  ASSERT_TRUE(begun("held"));
  engine->request(ScriptedWork::requests({"other"}));
  EXPECT_TRUE(eventually([&] { return engine->ready(request("other")) != nullptr; }, 15s));
  EXPECT_EQ(engine->ready(request("held")), nullptr);
  claim.reset();
  EXPECT_EQ(text(engine->get(request("held"), 20s)), "compiled source of held");
}

TEST_F(EngineThatWaits, WaitedForUnitIsNotBlockedByAnotherProcess) {
  auto claim = held_elsewhere("held");
  const auto engine = this->engine();
  engine->request(ScriptedWork::requests({"held"}), Priority::Foreground);
  ASSERT_TRUE(begun("held"));
  EXPECT_EQ(text(engine->get(request("other"), 15s)), "compiled source of other");
  claim.reset();
  EXPECT_EQ(text(engine->get(request("held"), 20s)), "compiled source of held");
}

TEST_F(EngineThatWaits, FleetLeaseDoesNotOccupyThread) {
  LocalClaims leases(directory_.path("leases"));
  LocalClaims other(directory_.path("leases"));
  params_.fleet = &leases;
  auto lease = other.acquire(recipe(request("held")).request_key(), 0ms, {});
  ASSERT_EQ(lease.outcome, Claims::Outcome::Acquired) << lease.reason;
  const auto engine = this->engine();
  engine->request(ScriptedWork::requests({"held"}));
  ASSERT_TRUE(begun("held"));
  engine->request(ScriptedWork::requests({"other"}));
  EXPECT_TRUE(eventually([&] { return engine->ready(request("other")) != nullptr; }, 15s));
  lease.claim.reset();
  EXPECT_EQ(text(engine->get(request("held"), 20s)), "compiled source of held");
}

TEST_F(EngineThatWaits, CallerWithoutThreadsKeepsDeadlineInClaim) {
  const auto claim = held_elsewhere("held");
  const auto engine = this->engine();
  const NoThreads no_threads;
  const auto start = system_clock().steady();
  EXPECT_EQ(text(engine->get(request("held"), 100ms)), "compiled source of held");
  EXPECT_LT(milliseconds_since(system_clock(), start), 10'000) << "the claim is held longer than the caller waits";
}

TEST_F(EngineThatWaits, StopEndsAllWaits) {
  const auto first = held_elsewhere("held");
  const auto second = held_elsewhere("held too");
  const auto engine = this->engine();
  engine->request(ScriptedWork::requests({"held", "held too"}));
  ASSERT_TRUE(begun("held") && begun("held too"));
  const auto start = system_clock().steady();
  engine->stop();
  EXPECT_LT(milliseconds_since(system_clock(), start), 10'000);
}

}  // namespace
}  // namespace kiln::test
