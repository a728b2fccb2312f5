// SPDX-License-Identifier: Apache-2.0
#include "engine/resolver.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "base/process/system_info.hpp"
#include "cache/disk_store.hpp"
#include "cache/local_claims.hpp"
#include "core/wait_observer.hpp"
#include "support/fakes/fake_compiler.hpp"
#include "support/fakes/memory_store.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

class BrokenStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const ArtifactKey&, const RequestContext&) override { return broken(); }
  Status put(const ArtifactKey&, const Artifact&, const RequestContext&) override { return broken(); }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey&, std::size_t, const RequestContext&) override {
    return broken();
  }
  Status add_dependency_set(const RequestKey&, const DependencySet&, const RequestContext&) override {
    return broken();
  }
  std::string describe() const override { return "broken"; }

 private:
  static Error broken() { return make_error(Code::Io, "the store is broken"); }
};

class NoClaims final : public Claims {
 public:
  AcquireResult acquire(const RequestKey&, std::chrono::milliseconds, const RequestContext&) override {
    return {Outcome::Unavailable, nullptr, "no locks here"};
  }
};

class ResolverTest : public testing::Test {
 protected:
  Resolver make_resolver(Store* store, Claims* claims = nullptr, bool may_compile = true) {
    Resolver::Params params;
    params.store = store;
    params.claims = claims;
    params.digests = &digests_;
    params.emitter = log_.emitter();
    params.compile_allowed = may_compile;
    return Resolver(params);
  }
  Recipe recipe(const std::string& source) {
    const Unit unit = Unit::of_kind("fake", "unit", source).with_include_root(directory_.path());
    Recipe recipe = recipe_for(compiler_, unit, Target::sm(80));
    recipe.self_contained = compiler_.is_self_contained(recipe);
    return recipe;
  }

  TemporaryDirectory directory_;
  FileDigestCache digests_{std::string()};
  EventLog log_;
  FakeCompiler compiler_;
  MemoryStore memory_;
};

TEST_F(ResolverTest, HitHasTheTaskOfItsRequest) {
  Resolver resolver = make_resolver(&memory_);
  ASSERT_TRUE(resolver.get(recipe("a"), compiler_, {}).has_value());
  RequestContext context;
  context.task_id = 7;
  const auto hit = resolver.find(recipe("a"), context);
  ASSERT_TRUE(hit.has_value() && hit->has_value());
  EXPECT_EQ((*hit)->flow, 7U);
}

TEST_F(ResolverTest, CompilesOnceAndThenHits) {
  Resolver resolver = make_resolver(&memory_);
  EXPECT_EQ(resolver.get(recipe("a"), compiler_, {})->origin, Origin::Compiled);
  const auto again = resolver.get(recipe("a"), compiler_, {});
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->origin, Origin::Memory);
  EXPECT_EQ(again->artifact.bytes.view(), "compiled a");
  EXPECT_EQ(compiler_.compiles, 1);
  EXPECT_EQ(log_.count(Event::Kind::Published), 1u);
}

TEST_F(ResolverTest, CompilesAgainWhenDependencyChangesAndHitsWhenRestored) {
  Resolver resolver = make_resolver(&memory_);
  write_text(directory_.path("h.h"), "one");
  EXPECT_EQ(resolver.get(recipe("include h.h"), compiler_, {})->artifact.bytes.view(), "compiled one");
  write_text(directory_.path("h.h"), "two");
  EXPECT_EQ(resolver.get(recipe("include h.h"), compiler_, {})->artifact.bytes.view(), "compiled two");
  write_text(directory_.path("h.h"), "one");
  const auto back = resolver.get(recipe("include h.h"), compiler_, {});
  EXPECT_EQ(back->artifact.bytes.view(), "compiled one");
  EXPECT_EQ(back->origin, Origin::Memory);
  EXPECT_EQ(compiler_.compiles, 2);
}

TEST_F(ResolverTest, DoesNotStoreUncacheableArtifactAndReportsReason) {
  Resolver resolver = make_resolver(&memory_);
  compiler_.uncacheable_reason = "the source uses __TIME__";
  EXPECT_TRUE(resolver.get(recipe("a"), compiler_, {}).has_value());
  EXPECT_TRUE(resolver.get(recipe("a"), compiler_, {}).has_value());
  EXPECT_EQ(compiler_.compiles, 2);
  ASSERT_EQ(log_.count(Event::Kind::NotPublished), 2u);
  EXPECT_EQ(log_.of(Event::Kind::NotPublished)[0].message, "the source uses __TIME__");
}

TEST_F(ResolverTest, SucceedsWithBrokenStoreAndWithoutClaims) {
  BrokenStore store;
  NoClaims claims;
  const auto answer = make_resolver(&store, &claims).get(recipe("a"), compiler_, {});
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->artifact.bytes.view(), "compiled a");
  EXPECT_GE(log_.count(Event::Kind::CacheUnavailable), 1u);
  EXPECT_EQ(log_.count(Event::Kind::ClaimUnavailable), 1u);
  EXPECT_EQ(log_.count(Event::Kind::NotPublished), 1u);
}

TEST_F(ResolverTest, SucceedsIfStoreCannotReturnDependencySets) {
  BrokenStore store;
  Recipe open = recipe("a");
  open.self_contained = false;
  const auto answer = make_resolver(&store).get(open, compiler_, {});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(answer->artifact.bytes.view(), "compiled a");
  EXPECT_GE(log_.count(Event::Kind::CacheUnavailable), 1u);
}

TEST_F(ResolverTest, CompilesEachTimeWithoutStore) {
  Resolver resolver = make_resolver(nullptr);
  EXPECT_EQ(resolver.get(recipe("a"), compiler_, {})->origin, Origin::Compiled);
  EXPECT_EQ(resolver.get(recipe("a"), compiler_, {})->origin, Origin::Compiled);
}

TEST_F(ResolverTest, MissIsErrorWithUnitTargetAndTiersIfCompilingIsDisabled) {
  const auto answer = make_resolver(&memory_, nullptr, false).get(recipe("a"), compiler_, {});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code, Code::Denied);
  for (const char* part : {"'unit'", "sm_80", "memory"}) {
    EXPECT_NE(answer.error().message.find(part), std::string::npos) << answer.error().message;
  }
  EXPECT_EQ(compiler_.compiles, 0);
}

TEST_F(ResolverTest, ReturnsCompilerErrorAndStoresNothing) {
  compiler_.fails = true;
  const auto answer = make_resolver(&memory_).get(recipe("a"), compiler_, {});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().log, "line 1: no");
  compiler_.fails = false;
  EXPECT_EQ(make_resolver(&memory_).get(recipe("a"), compiler_, {})->origin, Origin::Compiled);
}

TEST_F(ResolverTest, CompilesOnceWhenManyThreadsMissSameKey) {
  auto store = DiskStore::open({.root = directory_.path("cache")}, log_.emitter()).value();
  LocalClaims claims = LocalClaims::for_cache(directory_.path("cache"));
  Resolver resolver = make_resolver(store.get(), &claims);
  compiler_.takes = std::chrono::milliseconds(100);
  const Recipe wanted = recipe("a");
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      const auto answer = resolver.get(wanted, compiler_, {});
      if (answer && answer->artifact.bytes.view() == "compiled a") ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 16);
  EXPECT_EQ(compiler_.compiles, 1);
}

/// Claims that return scripted results in order, repeat the last one, and record the calls.
class ScriptedClaims final : public Claims {
 public:
  explicit ScriptedClaims(std::vector<Outcome> script) : script_(std::move(script)) {}
  AcquireResult acquire(const RequestKey& request, std::chrono::milliseconds wait, const RequestContext&) override {
    waits.push_back(wait);
    requests.push_back(request);
    if (on_acquire) on_acquire();
    const Outcome outcome = script_.at(std::min(waits.size(), script_.size()) - 1);
    return {outcome, outcome == Outcome::Acquired ? std::make_unique<Claim>() : nullptr, "as the script says"};
  }

  std::function<void()> on_acquire;
  std::vector<std::chrono::milliseconds> waits;
  std::vector<RequestKey> requests;

 private:
  std::vector<Outcome> script_;
};

TEST_F(ResolverTest, ClaimHolderSeesThatCallerWaits) {
  using Outcome = Claims::Outcome;
  const WorkerSlots slots(directory_.path("slots"));
  // Urgent from the start, and urgent while it waits in the background.
  for (const bool from_start : {true, false}) {
    const Recipe wanted = recipe(from_start ? "a" : "b");
    RequestContext context{.urgent = Urgency(from_start)};
    const Digest request = wanted.request_key().digest;
    ScriptedClaims host({Outcome::TimedOut, Outcome::TimedOut});
    std::vector<bool> awaited;
    host.on_acquire = [&] {
      awaited.push_back(slots.is_awaited(request));
      context.urgent.raise();
    };
    Resolver::Params params;
    params.store = &memory_;
    params.claims = &host;
    params.slots = &slots;
    params.digests = &digests_;
    EXPECT_TRUE(Resolver(params).get(wanted, compiler_, context).has_value());
    ASSERT_GE(awaited.size(), 2U);
    EXPECT_FALSE(awaited.front()) << "before another process is known to hold the claim";
    EXPECT_EQ(std::count(awaited.begin(), awaited.end(), false), 1) << "from then on, also for takeovers";
    EXPECT_FALSE(slots.is_awaited(request)) << "it no longer waits";
  }
}

class ResolverInAFleet : public ResolverTest {
 protected:
  Resolver resolver(ScriptedClaims& host, ScriptedClaims& fleet) {
    Resolver::Params params;
    params.store = &memory_;
    params.claims = &host;
    params.fleet = &fleet;
    params.digests = &digests_;
    params.emitter = log_.emitter();
    params.lease_ttl = std::chrono::seconds(5);
    return Resolver(params);
  }
  using Outcome = Claims::Outcome;
};

TEST_F(ResolverInAFleet, ClaimsHostThenFleetAndEachWaitLeavesTimeForTheNext) {
  ScriptedClaims host({Outcome::Acquired});
  ScriptedClaims fleet({Outcome::Acquired});
  fleet.on_acquire = [&] { EXPECT_EQ(host.waits.size(), 1U); };
  EXPECT_EQ(resolver(host, fleet).get(recipe("a"), compiler_, {})->origin, Origin::Compiled);
  ASSERT_EQ(fleet.waits.size(), 1U);
  EXPECT_EQ(fleet.waits[0], std::chrono::seconds(70)) << "a takeover starts after one lease, and so may the next";
  EXPECT_EQ(host.waits[0], std::chrono::seconds(100)) << "the holder of the host claim may wait for the fleet first";
}

TEST_F(ResolverInAFleet, EntryPublishedByAnotherHostIsUsed) {
  for (const Outcome outcome : {Outcome::ReleasedByOther, Outcome::Acquired}) {
    const Recipe wanted = recipe(outcome == Outcome::Acquired ? "a" : "b");
    ScriptedClaims host({Outcome::Acquired});
    ScriptedClaims fleet({outcome});
    FakeCompiler other;
    fleet.on_acquire = [&] { ASSERT_TRUE(ResolverTest::make_resolver(&memory_).get(wanted, other, {}).has_value()); };
    EXPECT_EQ(resolver(host, fleet).get(wanted, compiler_, {})->origin, Origin::Memory);
  }
  EXPECT_EQ(compiler_.compiles, 0);
}

TEST_F(ResolverInAFleet, LooksUpAgainAfterUnavailableOrTimedOutFleet) {
  for (const Outcome outcome : {Outcome::Unavailable, Outcome::TimedOut}) {
    const Recipe wanted = recipe(outcome == Outcome::Unavailable ? "a" : "b");
    ScriptedClaims host({Outcome::Acquired});
    ScriptedClaims fleet({outcome});
    FakeCompiler other;
    fleet.on_acquire = [&] { ASSERT_TRUE(ResolverTest::make_resolver(&memory_).get(wanted, other, {}).has_value()); };
    EXPECT_EQ(resolver(host, fleet).get(wanted, compiler_, {})->origin, Origin::Memory);
    EXPECT_EQ(fleet.waits.size(), 1U) << "a lease expires by itself and is not taken over";
  }
  EXPECT_EQ(compiler_.compiles, 0);
}

TEST_F(ResolverInAFleet, UnavailableOrTimedOutFleetIsNotWaitedFor) {
  for (const Outcome outcome : {Outcome::Unavailable, Outcome::TimedOut}) {
    ScriptedClaims host({Outcome::Acquired});
    ScriptedClaims fleet({outcome});
    const std::string source = outcome == Outcome::Unavailable ? "a" : "b";
    EXPECT_EQ(resolver(host, fleet).get(recipe(source), compiler_, {})->origin, Origin::Compiled);
  }
  EXPECT_EQ(compiler_.compiles, 2);
}

class ResolverWithAHungHolder : public ResolverTest {
 protected:
  using Outcome = Claims::Outcome;

  Result<ResolveResult> get(Claims& host, const Recipe& recipe, const RequestContext& context = {},
                            std::chrono::milliseconds wait = std::chrono::seconds(30)) {
    Resolver::Params params;
    params.store = &memory_;
    params.claims = &host;
    params.digests = &digests_;
    params.emitter = log_.emitter();
    params.unknown_cost_wait = wait;
    return Resolver(params).get(recipe, compiler_, context);
  }
  /// Publishes the unit as another process at the n-th acquire.
  void publish_at(ScriptedClaims& claims, std::size_t time, const Recipe& recipe) {
    claims.on_acquire = [this, &claims, time, recipe] {
      if (claims.waits.size() != time) return;
      FakeCompiler other;
      ASSERT_TRUE(make_resolver(&memory_).get(recipe, other, {}).has_value());
    };
  }
};

TEST_F(ResolverWithAHungHolder, LooksUpAgainAfterAnyClaimOutcome) {
  for (const Outcome outcome : {Outcome::TimedOut, Outcome::Unavailable, Outcome::ReleasedByOther, Outcome::Acquired}) {
    const Recipe wanted = recipe("source " + std::to_string(static_cast<int>(outcome)));
    ScriptedClaims host({outcome});
    publish_at(host, 1, wanted);
    const auto answer = get(host, wanted);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->origin, Origin::Memory) << static_cast<int>(outcome);
    EXPECT_EQ(host.waits.size(), 1U);
  }
  EXPECT_EQ(compiler_.compiles, 0);
}

TEST_F(ResolverWithAHungHolder, TriesTakeoversThenCompilesForItself) {
  const Recipe wanted = recipe("a");
  ScriptedClaims host({Outcome::TimedOut});
  EXPECT_EQ(get(host, wanted)->origin, Origin::Compiled);
  ASSERT_EQ(host.requests.size(), 1U + kMaxTakeovers);
  for (int level = 0; level <= kMaxTakeovers; ++level) {
    EXPECT_EQ(host.requests[static_cast<std::size_t>(level)], takeover_of(wanted.request_key(), level)) << level;
  }
}

TEST_F(ResolverWithAHungHolder, FindsEntryPublishedByTakeoverAtEachLevel) {
  for (std::size_t time = 2; time <= 1 + kMaxTakeovers; ++time) {
    const Recipe wanted = recipe("source " + std::to_string(time));
    ScriptedClaims host({Outcome::TimedOut});
    publish_at(host, time, wanted);
    EXPECT_EQ(get(host, wanted)->origin, Origin::Memory);
    EXPECT_EQ(host.waits.size(), time);
  }
  EXPECT_EQ(compiler_.compiles, 0);
}

TEST_F(ResolverWithAHungHolder, WaitEndsAtDeadlineAndIsReportedToObserver) {
  struct Owner final : WaitObserver {
    void begin_wait() noexcept override { ++begun; }
    void end_wait() noexcept override { ++ended; }
    int begun = 0;
    int ended = 0;
  } owner;
  RequestContext context{.deadline = Deadline(system_clock(), std::chrono::milliseconds(70)), .waits = &owner};
  ScriptedClaims host({Outcome::TimedOut});
  EXPECT_EQ(get(host, recipe("a"), context)->origin, Origin::Compiled);
  EXPECT_LE(*std::max_element(host.waits.begin(), host.waits.end()), std::chrono::milliseconds(70));
  EXPECT_EQ(owner.begun, 1 + kMaxTakeovers);
  EXPECT_EQ(owner.ended, owner.begun);
  ScriptedClaims free({Outcome::Acquired});
  context.deadline.reset();
  EXPECT_EQ(get(free, recipe("b"), context)->origin, Origin::Compiled);
  EXPECT_EQ(owner.begun, 1 + kMaxTakeovers) << "a free claim is not a wait";
}

/// Records the server time budget of the lookups of a `get`, and whether they bypass the negative cache.
class BudgetStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const ArtifactKey&, const RequestContext& context) override {
    fresh.push_back(context.server_budget->bypasses_negative_cache());
    context.server_budget->charge(std::chrono::milliseconds(30));
    remaining = context.server_budget->remaining();
    return std::optional<Hit>();
  }
  Status put(const ArtifactKey&, const Artifact&, const RequestContext&) override { return {}; }
  Result<std::vector<DependencySet>> dependency_sets(const RequestKey&, std::size_t, const RequestContext&) override {
    return std::vector<DependencySet>();
  }
  Status add_dependency_set(const RequestKey&, const DependencySet&, const RequestContext&) override { return {}; }
  std::string describe() const override { return "allowances"; }

  std::vector<bool> fresh;
  std::chrono::nanoseconds remaining{};
};

TEST_F(ResolverInAFleet, LookupsShareOneBudgetAndOnlyTheLastBypassesNegativeCache) {
  BudgetStore store;
  ScriptedClaims host({Outcome::Acquired});
  ScriptedClaims fleet({Outcome::Acquired});
  Resolver::Params params;
  params.store = &store;
  params.claims = &host;
  params.fleet = &fleet;
  params.digests = &digests_;
  Recipe closed = recipe("a");
  closed.self_contained = true;
  ASSERT_TRUE(Resolver(params).get(closed, compiler_, {}).has_value());
  EXPECT_EQ(store.fresh, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(store.remaining, std::chrono::milliseconds(10)) << "100 ms minus three lookups of 30 ms";
}

// The services of a host whose compiler is not digested yet.
class UndigestedServices final : public UnitServices {
 public:
  explicit UndigestedServices(Compiler& compiler, Recipe recipe) : compiler_(compiler), recipe_(std::move(recipe)) {}
  Result<Compiler*> compiler(const Unit&, const Target&) override { return &compiler_; }
  Result<Recipe> recipe(const Unit&, const Target&, const RequestContext&) override { return recipe_; }
  std::optional<Recipe> undigested_recipe(const Unit&, const Target&) override { return recipe_; }
  Store* store_for(const Unit&) override { return nullptr; }
  void interrupt() override {}

 private:
  Compiler& compiler_;
  const Recipe recipe_;
};

class EarlyCompiler final : public Compiler {
 public:
  std::string kind() const override { return "fake"; }
  Result<CompilerIdentity> identity(const RequestContext&) override { return CompilerIdentity(); }
  Status supports(const Target&) override { return {}; }
  bool is_self_contained(const Recipe&) const override { return true; }
  std::unique_ptr<EarlyCompile> start_early(const Recipe&, const RequestContext&) override {
    return std::make_unique<Job>();
  }
  Result<CompileResult> compile(const Recipe&, const RequestContext&) override {
    return make_error(Code::CompileFailed, "not called");
  }

 private:
  class Job final : public EarlyCompile {};
};

TEST_F(ResolverInAFleet, OnlyHostWithoutFleetStartsEarly) {
  if (usable_cores() < 2) GTEST_SKIP() << "early compiles need two cores";
  EarlyCompiler compiler;
  UndigestedServices units(compiler, recipe("a"));
  Resolver::Params params;
  params.units = &units;
  params.digests = &digests_;
  const CompileRequest request{recipe("a").unit, Target::sm(80)};
  EXPECT_NE(Resolver(params).start_early(request, {}), nullptr);
  params.has_remote_tier = true;
  EXPECT_EQ(Resolver(params).start_early(request, {}), nullptr);
  params.has_remote_tier = false;
  ScriptedClaims fleet({Outcome::Acquired});
  params.fleet = &fleet;
  EXPECT_EQ(Resolver(params).start_early(request, {}), nullptr);
}

TEST_F(ResolverInAFleet, HostWithoutLocksStillQueriesServers) {
  for (const Outcome outcome : {Outcome::Unavailable, Outcome::TimedOut}) {
    BudgetStore store;
    ScriptedClaims host({outcome});
    Resolver::Params params;
    params.store = &store;
    params.claims = &host;
    params.has_remote_tier = true;
    params.digests = &digests_;
    Recipe closed = recipe("a");
    closed.self_contained = true;
    ASSERT_TRUE(Resolver(params).get(closed, compiler_, {}).has_value());
    EXPECT_EQ(store.fresh.size(), outcome == Outcome::TimedOut ? 5U : 2U)
        << "locally at first and before each takeover, and once with a server budget";
    EXPECT_EQ(store.remaining, std::chrono::milliseconds(70));
  }
}

}  // namespace
}  // namespace kiln::test
