// SPDX-License-Identifier: Apache-2.0
#include "support/fixtures/engine_fixture.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <thread>

namespace kiln::test {
namespace {

// Simulates the contents of a tier with `ResolverScript::snapshot`.
class EngineLookTest : public EngineTest {
 protected:
  EngineLookTest() {
    params_ = params();
    params_.lookup = [this](const CompileRequest& request,
                            const RequestContext& context) -> Result<std::optional<ResolveResult>> {
      ++looks_;
      if (while_looking_) while_looking_(context);
      if (request.unit.name() != "at hand") return std::optional<ResolveResult>();
      ResolveResult answer;
      answer.artifact.bytes = Bytes::of("found " + request.unit.name());
      answer.origin = Origin::Disk;
      return std::optional(answer);
    };
  }

  ResolverScript params_;
  std::atomic<int> looks_{0};
  std::function<void(const RequestContext&)> while_looking_;
};

TEST_F(EngineLookTest, GetFindsTierHitWithoutThread) {
  ScriptedEngine engine(params_);
  const Got got = get(engine, "at hand");
  EXPECT_EQ(text(got), "found at hand");
  EXPECT_EQ(engine.ready(request("at hand")), got->get());
  EXPECT_EQ(engine.status().cached, 1U);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  for (const SeenThread& thread : work_.threads()) EXPECT_NE(thread.id, std::this_thread::get_id());
  EXPECT_EQ(work_.times_begun("at hand"), 0);
  EXPECT_EQ(log_.count(Event::Kind::BlockingCompile), 1U) << "for the other unit";
}

TEST_F(EngineLookTest, GetWithoutTimeDoesNotLookUp) {
  work_.otherwise({.held = true});
  ScriptedEngine engine(params_);
  EXPECT_EQ(code(get(engine, "at hand", 0ns)), Code::TimedOut);
  EXPECT_EQ(looks_, 0);
}

TEST_F(EngineLookTest, TierHitDoesNotWaitInQueue) {
  work_.when("long", {.held = true});
  ScriptedEngine engine(params_, {.max_threads = 1});
  request(engine, {"long"});
  EXPECT_TRUE(work_.begun("long"));
  const CompileRequest wanted = request("at hand");
  engine.request({&wanted, 1});
  EXPECT_EQ(text(engine.get(wanted, kForever)), "found at hand");
  work_.open("long");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(work_.times_begun("at hand"), 0);
}

TEST_F(EngineLookTest, LookupKnowsRequestTime) {
  std::optional<std::chrono::nanoseconds> wanted_at;
  while_looking_ = [&](const RequestContext& context) { wanted_at = context.requested_at; };
  work_.when("long", {.held = true});
  ScriptedEngine engine(params_, {.max_threads = 1});
  request(engine, {"long"});
  EXPECT_TRUE(work_.begun("long"));
  const CompileRequest wanted = request("at hand");
  const auto requested = clock_.steady();
  engine.request({&wanted, 1});
  clock_.advance(5s);
  EXPECT_EQ(text(engine.get(wanted, kForever)), "found at hand");
  EXPECT_EQ(wanted_at, requested) << "it was queued at that time";
  engine.forget(wanted);
  clock_.advance(5s);
  EXPECT_EQ(text(engine.get(wanted, kForever)), "found at hand");
  EXPECT_EQ(wanted_at, clock_.steady()) << "it is requested again";
  work_.open("long");
  EXPECT_TRUE(settles(engine));
}

TEST_F(EngineLookTest, TaskThreadKnowsRequestTime) {
  std::atomic<std::int64_t> wanted_at = 0;
  params_.resolve = [&, resolve = params_.resolve](const CompileRequest& request, const Recipe& recipe,
                                                   const RequestContext& context) {
    wanted_at = context.requested_at.value_or(0ns).count();
    return resolve(request, recipe, context);
  };
  ScriptedEngine engine(params_);
  for (int again = 0; again < 2; ++again) {
    clock_.advance(5s);
    const CompileRequest wanted = request("a");
    engine.request({&wanted, 1});
    EXPECT_TRUE(settles(engine));
    EXPECT_EQ(wanted_at, clock_.steady().count());
    engine.forget(wanted);
  }
}

TEST_F(EngineLookTest, TierHitCompletesAllWaiters) {
  work_.when("first", {.held = true});
  ScriptedEngine engine(params_, {.max_threads = 1});
  auto first = getting(engine, "first");
  EXPECT_TRUE(work_.begun("first"));
  auto hurried = getting(engine, "at hand", 5ms);
  EXPECT_TRUE(clock_.waiting(2));
  EXPECT_EQ(text(get(engine, "at hand")), "found at hand");
  EXPECT_EQ(text(hurried.get()), "found at hand");
  work_.open("first");
  EXPECT_TRUE(first.get().has_value());
}

TEST_F(EngineLookTest, CurrentResultIsNotLookedUpAgain) {
  params_.is_current = [](const CompileRequest&, const ResolveResult&, const RequestContext&) { return true; };
  ScriptedEngine engine(params_);
  const ResolveResultPtr before = get(engine, "at hand").value();
  const std::vector<Unit> refreshed = {request("at hand").unit};
  engine.refresh(refreshed);
  EXPECT_EQ(get(engine, "at hand").value(), before);
  EXPECT_EQ(looks_, 1);
}

TEST_F(EngineLookTest, TaskThatStartsDuringLookupIsNotAffected) {
  work_.when("at hand", {.held = true});
  ScriptedEngine engine(params_);
  while_looking_ = [&](const RequestContext&) {
    request(engine, {"at hand"});
    EXPECT_TRUE(work_.begun("at hand"));
  };
  EXPECT_EQ(text(get(engine, "at hand")), "found at hand");
  work_.open("at hand");
  EXPECT_TRUE(settles(engine));
  EXPECT_EQ(text(get(engine, "at hand", 0ns)), "compiled source of at hand");
}

TEST_F(EngineLookTest, LookupErrorOrExceptionCostsOneCompile) {
  params_.lookup = [](const CompileRequest& request, const RequestContext&) -> Result<std::optional<ResolveResult>> {
    if (request.unit.name() == "a") throw std::bad_alloc();
    return make_error(Code::Io, "the disk is gone");
  };
  ScriptedEngine engine(params_);
  EXPECT_EQ(text(get(engine, "a")), "compiled source of a");
  EXPECT_EQ(text(get(engine, "b")), "compiled source of b");
}

}  // namespace
}  // namespace kiln::test
