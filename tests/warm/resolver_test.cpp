#include "warm/resolver.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <vector>

#include "claim/local_claims.hpp"
#include "store/allowance.hpp"
#include "store/disk_store.hpp"
#include "support/event_log.hpp"
#include "support/fake_compiler.hpp"
#include "support/files.hpp"
#include "support/memory_store.hpp"
#include "support/recipes.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

class BrokenStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const Key&) override { return broken(); }
  Status put(const Key&, const Artifact&) override { return broken(); }
  Result<std::vector<Closure>> closures(const RequestKey&, std::size_t) override { return broken(); }
  Status add_closure(const RequestKey&, const Closure&) override { return broken(); }
  std::string describe() const override { return "broken"; }

 private:
  static Error broken() { return failure(Code::Io, "the store is broken"); }
};

class NoClaims final : public Claims {
 public:
  Answer acquire(const RequestKey&, std::chrono::milliseconds, const std::stop_token&) override {
    return {Outcome::Unavailable, nullptr, "no locks here"};
  }
};

class ResolverTest : public testing::Test {
 protected:
  Resolver resolver(Store* store, Claims* claims = nullptr, bool may_compile = true) {
    Resolver::Parts parts;
    parts.store = store;
    parts.claims = claims;
    parts.digests = &digests_;
    parts.observer = log_.observer();
    parts.may_compile = may_compile;
    return Resolver(parts);
  }
  Recipe recipe(const std::string& source) {
    const Unit unit = Unit::of_kind("fake", "unit", source).include_root(folder_.path());
    Recipe recipe = recipe_for(compiler_, unit, Target::sm(80));
    recipe.closed = compiler_.closed(recipe);
    return recipe;
  }

  TemporaryDirectory folder_;
  FileDigests digests_{std::string()};
  EventLog log_;
  FakeCompiler compiler_;
  MemoryStore memory_;
};

TEST_F(ResolverTest, CompilesOnceAndThenHits) {
  Resolver road = resolver(&memory_);
  EXPECT_EQ(road.get(recipe("a"), compiler_)->origin, Origin::Compiled);
  const auto again = road.get(recipe("a"), compiler_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->origin, Origin::Memory);
  EXPECT_EQ(again->artifact.bytes.view(), "compiled a");
  EXPECT_EQ(compiler_.compiles, 1);
  EXPECT_EQ(log_.count(Event::Kind::Published), 1u);
}

TEST_F(ResolverTest, CompilesAnewWhenAFileOfTheClosureChangesAndHitsWhenItIsBack) {
  Resolver road = resolver(&memory_);
  spit(folder_.path("h.h"), "one");
  EXPECT_EQ(road.get(recipe("include h.h"), compiler_)->artifact.bytes.view(), "compiled one");
  spit(folder_.path("h.h"), "two");
  EXPECT_EQ(road.get(recipe("include h.h"), compiler_)->artifact.bytes.view(), "compiled two");
  spit(folder_.path("h.h"), "one");
  const auto back = road.get(recipe("include h.h"), compiler_);
  EXPECT_EQ(back->artifact.bytes.view(), "compiled one");
  EXPECT_EQ(back->origin, Origin::Memory);
  EXPECT_EQ(compiler_.compiles, 2);
}

TEST_F(ResolverTest, DoesNotKeepWhatMayNotBeCachedAndSaysWhy) {
  Resolver road = resolver(&memory_);
  compiler_.not_cacheable = "the source uses __TIME__";
  EXPECT_TRUE(road.get(recipe("a"), compiler_).ok());
  EXPECT_TRUE(road.get(recipe("a"), compiler_).ok());
  EXPECT_EQ(compiler_.compiles, 2);
  ASSERT_EQ(log_.count(Event::Kind::NotPublished), 2u);
  EXPECT_EQ(log_.of(Event::Kind::NotPublished)[0].message, "the source uses __TIME__");
}

TEST_F(ResolverTest, AnswersThoughTheStoreIsBrokenAndThereAreNoClaims) {
  BrokenStore store;
  NoClaims claims;
  const auto answer = resolver(&store, &claims).get(recipe("a"), compiler_);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->artifact.bytes.view(), "compiled a");
  EXPECT_GE(log_.count(Event::Kind::CacheUnavailable), 1u);
  EXPECT_EQ(log_.count(Event::Kind::ClaimUnavailable), 1u);
  EXPECT_EQ(log_.count(Event::Kind::NotPublished), 1u);
}

TEST_F(ResolverTest, AnswersThoughAStoreCannotTellWhatAUnitIncluded) {
  BrokenStore store;
  Recipe open = recipe("a");
  open.closed = false;
  const auto answer = resolver(&store).get(open, compiler_);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->artifact.bytes.view(), "compiled a");
  EXPECT_GE(log_.count(Event::Kind::CacheUnavailable), 1u);
}

TEST_F(ResolverTest, CompilesEachTimeWithoutAStore) {
  Resolver road = resolver(nullptr);
  EXPECT_EQ(road.get(recipe("a"), compiler_)->origin, Origin::Compiled);
  EXPECT_EQ(road.get(recipe("a"), compiler_)->origin, Origin::Compiled);
}

TEST_F(ResolverTest, TurnsAMissIntoAnErrorThatNamesUnitTargetAndTiersWhereCompilingIsOff) {
  const auto answer = resolver(&memory_, nullptr, false).get(recipe("a"), compiler_);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().code, Code::Refused);
  for (const char* part : {"'unit'", "sm_80", "memory"}) {
    EXPECT_NE(answer.error().message.find(part), std::string::npos) << answer.error().message;
  }
  EXPECT_EQ(compiler_.compiles, 0);
}

TEST_F(ResolverTest, GivesTheCompilersErrorAndKeepsNothing) {
  compiler_.fails = true;
  const auto answer = resolver(&memory_).get(recipe("a"), compiler_);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().log, "line 1: no");
  compiler_.fails = false;
  EXPECT_EQ(resolver(&memory_).get(recipe("a"), compiler_)->origin, Origin::Compiled);
}

TEST_F(ResolverTest, CompilesOnceWhereManyThreadsMissTheSameKey) {
  auto store = DiskStore::open({.root = folder_.path("cache")}, log_.observer()).value();
  LocalClaims claims = LocalClaims::for_cache(folder_.path("cache"));
  Resolver road = resolver(store.get(), &claims);
  compiler_.takes = std::chrono::milliseconds(100);
  const Recipe wanted = recipe("a");
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] {
      const auto answer = road.get(wanted, compiler_);
      if (answer && answer->artifact.bytes.view() == "compiled a") ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 16);
  EXPECT_EQ(compiler_.compiles, 1);
}

/// A fleet whose table answers as it is told to, one answer after the other, and that notes what it was asked.
class ScriptedClaims final : public Claims {
 public:
  explicit ScriptedClaims(std::vector<Outcome> script) : script_(std::move(script)) {}
  Answer acquire(const RequestKey&, std::chrono::milliseconds wait, const std::stop_token&) override {
    waits.push_back(wait);
    if (on_acquire) on_acquire();
    const Outcome outcome = script_.at(waits.size() - 1);
    return {outcome, outcome == Outcome::Mine ? std::make_unique<Claim>() : nullptr, "as the script says"};
  }

  std::function<void()> on_acquire;
  std::vector<std::chrono::milliseconds> waits;

 private:
  std::vector<Outcome> script_;
};

class ResolverInAFleet : public ResolverTest {
 protected:
  Resolver resolver(ScriptedClaims& host, ScriptedClaims& fleet) {
    Resolver::Parts parts;
    parts.store = &memory_;
    parts.claims = &host;
    parts.fleet = &fleet;
    parts.digests = &digests_;
    parts.observer = log_.observer();
    parts.lease = std::chrono::seconds(5);
    return Resolver(parts);
  }
  using Outcome = Claims::Outcome;
};

TEST_F(ResolverInAFleet, TheHostIsClaimedFirstThenTheFleetAndEachWaitLeavesTimeForTheNext) {
  ScriptedClaims host({Outcome::Mine});
  ScriptedClaims fleet({Outcome::Mine});
  fleet.on_acquire = [&] { EXPECT_EQ(host.waits.size(), 1U); };
  EXPECT_EQ(resolver(host, fleet).get(recipe("a"), compiler_)->origin, Origin::Compiled);
  ASSERT_EQ(fleet.waits.size(), 1U);
  EXPECT_EQ(fleet.waits[0], std::chrono::seconds(40)) << "a takeover needs a lease to begin, and so may the next";
  EXPECT_EQ(host.waits[0], std::chrono::seconds(70)) << "whoever holds the host may wait for the fleet first";
}

TEST_F(ResolverInAFleet, WhatAnotherHostPublishedMeanwhileIsTakenAndNotCompiled) {
  for (const Outcome outcome : {Outcome::Finished, Outcome::Mine}) {
    const Recipe wanted = recipe(outcome == Outcome::Mine ? "a" : "b");
    ScriptedClaims host({Outcome::Mine});
    ScriptedClaims fleet({outcome});
    FakeCompiler other;
    fleet.on_acquire = [&] { ASSERT_TRUE(ResolverTest::resolver(&memory_).get(wanted, other).ok()); };
    EXPECT_EQ(resolver(host, fleet).get(wanted, compiler_)->origin, Origin::Memory);
  }
  EXPECT_EQ(compiler_.compiles, 0);
}

TEST_F(ResolverInAFleet, AFleetThatCannotBeAskedOrTakesTooLongIsNotWaitedFor) {
  for (const Outcome outcome : {Outcome::Unavailable, Outcome::TimedOut}) {
    ScriptedClaims host({Outcome::Mine});
    ScriptedClaims fleet({outcome});
    const std::string source = outcome == Outcome::Unavailable ? "a" : "b";
    EXPECT_EQ(resolver(host, fleet).get(recipe(source), compiler_)->origin, Origin::Compiled);
  }
  EXPECT_EQ(compiler_.compiles, 2);
}

/// Notes what the lookups of a `get` may take of servers, and whether they are to ask afresh.
class AllowanceStore final : public Store {
 public:
  Result<std::optional<Hit>> get(const Key&) override {
    const Allowance* allowance = Allowance::current();
    fresh.push_back(allowance != nullptr && allowance->fresh());
    Allowance::spend(std::chrono::milliseconds(30));
    left = Allowance::at_most(std::chrono::hours(1));
    return std::optional<Hit>();
  }
  Status put(const Key&, const Artifact&) override { return {}; }
  Result<std::vector<Closure>> closures(const RequestKey&, std::size_t) override { return std::vector<Closure>(); }
  Status add_closure(const RequestKey&, const Closure&) override { return {}; }
  std::string describe() const override { return "allowances"; }

  std::vector<bool> fresh;
  std::chrono::nanoseconds left{};
};

TEST_F(ResolverInAFleet, AllLookupsOfOneGetShareOneAllowanceAndOnlyTheLastAsksAfresh) {
  AllowanceStore store;
  ScriptedClaims host({Outcome::Mine});
  ScriptedClaims fleet({Outcome::Mine});
  Resolver::Parts parts;
  parts.store = &store;
  parts.claims = &host;
  parts.fleet = &fleet;
  parts.digests = &digests_;
  Recipe closed = recipe("a");
  closed.closed = true;
  ASSERT_TRUE(Resolver(parts).get(closed, compiler_).ok());
  EXPECT_EQ(store.fresh, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(store.left, std::chrono::milliseconds(10)) << "of a hundred, after three lookups of thirty";
}

TEST_F(ResolverInAFleet, AHostWhoseLocksDoNotWorkAsksTheServersAllTheSame) {
  for (const Outcome outcome : {Outcome::Unavailable, Outcome::TimedOut}) {
    AllowanceStore store;
    ScriptedClaims host({outcome});
    Resolver::Parts parts;
    parts.store = &store;
    parts.claims = &host;
    parts.asks_servers = true;
    parts.digests = &digests_;
    Recipe closed = recipe("a");
    closed.closed = true;
    ASSERT_TRUE(Resolver(parts).get(closed, compiler_).ok());
    EXPECT_EQ(store.fresh.size(), 2U) << "once on this host, and once with an allowance";
    EXPECT_EQ(store.left, std::chrono::milliseconds(70));
  }
}

}  // namespace
}  // namespace kiln::test
