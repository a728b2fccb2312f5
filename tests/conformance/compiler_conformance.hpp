// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backends/compiler.hpp"
#include "support/fixtures/recipes.hpp"

namespace kiln::test {

/// Requirements of every `Compiler` implementation. `Fixture` supplies:
///   std::unique_ptr<Compiler> compiler();     another instance of the same compiler
///   Unit unit();                              a unit that compiles, with at least two requested entries
///   Unit broken();                            a unit with an error
///   Target target();                          the target of both
///   Target unsupported();                     a target that this compiler cannot compile for
///   std::string possible();                   required substring of the rejection: what is supported
///   static constexpr bool reproducible;       true if equal recipes give equal bytes
/// Instantiate: INSTANTIATE_TYPED_TEST_SUITE_P(OpenCl, CompilerConformance, OpenClFixture);
template <class Fixture>
class CompilerConformance : public ::testing::Test {
 protected:
  Recipe recipe(Compiler& compiler, const Unit& unit) { return recipe_for(compiler, unit, fixture_.target()); }

  void expect_good(const Result<CompileResult>& compiled, const Unit& unit) {
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message << "\n" << compiled.error().log;
    const Artifact& artifact = compiled->artifact;
    EXPECT_FALSE(artifact.bytes.empty());
    EXPECT_EQ(artifact.target, fixture_.target());
    for (const std::string& entry : unit.entries()) {
      const std::string* symbol = artifact.symbol(entry);
      ASSERT_NE(symbol, nullptr) << entry;
      EXPECT_FALSE(symbol->empty()) << entry;
    }
  }

  Fixture fixture_;
};

TYPED_TEST_SUITE_P(CompilerConformance);

TYPED_TEST_P(CompilerConformance, IdentityIsStableAcrossInstancesAndCheap) {
  const auto one = this->fixture_.compiler();
  const auto two = this->fixture_.compiler();
  const auto first = one->identity({});
  const auto other = two->identity({});
  ASSERT_TRUE(first.has_value()) << first.error().message;
  ASSERT_TRUE(other.has_value()) << other.error().message;
  EXPECT_FALSE(first->name.empty());
  EXPECT_FALSE(first->version.empty());
  EXPECT_NE(first->digest, Digest{});
  EXPECT_EQ(first->digest, other->digest);
  EXPECT_EQ(first->environment, other->environment);
  const std::clock_t start = std::clock();  // CPU time: other load does not change it
  for (int i = 0; i < 100; ++i) ASSERT_EQ(one->identity({})->digest, first->digest);
  EXPECT_LT(std::clock() - start, CLOCKS_PER_SEC / 2);
}

TYPED_TEST_P(CompilerConformance, ReturnsBytesForTargetWithSymbolForEveryEntry) {
  const auto compiler = this->fixture_.compiler();
  const Unit unit = this->fixture_.unit();
  ASSERT_GE(unit.entries().size(), 2u);
  EXPECT_EQ(unit.kind(), compiler->kind());
  EXPECT_TRUE(compiler->supports(this->fixture_.target()).has_value());
  const auto compiled = compiler->compile(this->recipe(*compiler, unit), {});
  ASSERT_NO_FATAL_FAILURE(this->expect_good(compiled, unit));
  EXPECT_EQ(compiled->uncacheable_reason, "");
  EXPECT_NE(compiled->artifact.dependency_set, nullptr);
  EXPECT_GT(compiled->artifact.metadata.cost_ms, 0);
  EXPECT_EQ(compiled->artifact.metadata.unit, unit.name());
  EXPECT_FALSE(compiled->artifact.metadata.compiler.empty());
}

TYPED_TEST_P(CompilerConformance, EqualRecipesGiveEqualResults) {
  const auto one = this->fixture_.compiler();
  const auto two = this->fixture_.compiler();
  const Unit unit = this->fixture_.unit();
  const auto first = one->compile(this->recipe(*one, unit), {});
  const auto again = two->compile(this->recipe(*two, unit), {});
  ASSERT_NO_FATAL_FAILURE(this->expect_good(first, unit));
  ASSERT_NO_FATAL_FAILURE(this->expect_good(again, unit));
  EXPECT_EQ(first->artifact.entries, again->artifact.entries);
  EXPECT_EQ(this->recipe(*one, unit).request_key(), this->recipe(*two, unit).request_key());
  if (first->artifact.dependency_set != nullptr && again->artifact.dependency_set != nullptr) {
    EXPECT_EQ(first->artifact.dependency_set->encode(), again->artifact.dependency_set->encode());
  }
  if (TypeParam::reproducible) {
    EXPECT_EQ(first->artifact.bytes, again->artifact.bytes);
  }
}

TYPED_TEST_P(CompilerConformance, RejectsBrokenUnitWithLogAndStaysUsable) {
  const auto compiler = this->fixture_.compiler();
  const auto rejected = compiler->compile(this->recipe(*compiler, this->fixture_.broken()), {});
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::CompileFailed) << rejected.error().message;
  EXPECT_FALSE(rejected.error().log.empty());
  const Unit unit = this->fixture_.unit();
  this->expect_good(compiler->compile(this->recipe(*compiler, unit), {}), unit);
}

TYPED_TEST_P(CompilerConformance, RejectsUnsupportedTargetAndNamesSupportedOnes) {
  const auto compiler = this->fixture_.compiler();
  const Status supported = compiler->supports(this->fixture_.unsupported());
  ASSERT_FALSE(supported.has_value());
  EXPECT_EQ(supported.error().code, Code::Unsupported);
  EXPECT_NE(supported.error().message.find(this->fixture_.possible()), std::string::npos) << supported.error().message;
  const auto compiled =
      compiler->compile(recipe_for(*compiler, this->fixture_.unit(), this->fixture_.unsupported()), {});
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().code, Code::Unsupported);
  EXPECT_NE(compiled.error().message.find(this->fixture_.possible()), std::string::npos) << compiled.error().message;
}

TYPED_TEST_P(CompilerConformance, RejectsMissingEntryAndNamesIt) {
  const auto compiler = this->fixture_.compiler();
  const Unit unit = this->fixture_.unit().with_entry("no_such_kernel");
  const auto compiled = compiler->compile(this->recipe(*compiler, unit), {});
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().code, Code::CompileFailed);
  const std::string said = compiled.error().message + compiled.error().log;
  EXPECT_NE(said.find("no_such_kernel"), std::string::npos) << said;
}

TYPED_TEST_P(CompilerConformance, RejectsUnitOfAnotherKind) {
  const auto compiler = this->fixture_.compiler();
  const Unit unit = Unit::of_kind("tea", "leaves", this->fixture_.unit().source());
  const auto compiled = compiler->compile(this->recipe(*compiler, unit), {});
  ASSERT_FALSE(compiled.has_value());
  EXPECT_EQ(compiled.error().code, Code::InvalidArgument);
}

TYPED_TEST_P(CompilerConformance, CompilesOnEightThreadsConcurrently) {
  const auto compiler = this->fixture_.compiler();
  const Unit unit = this->fixture_.unit();
  const Unit broken = this->fixture_.broken();
  std::vector<std::thread> threads;
  std::vector<std::string> wrong(8);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      const bool expected = i % 4 != 3;
      const auto compiled = compiler->compile(this->recipe(*compiler, expected ? unit : broken), {});
      if (compiled.has_value() != expected) wrong[i] = expected ? compiled.error().message : "compiled a broken unit";
      for (const std::string& entry : unit.entries()) {
        if (compiled.has_value() && compiled->artifact.symbol(entry) == nullptr) wrong[i] = "no symbol for " + entry;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& reason : wrong) EXPECT_EQ(reason, "");
}

REGISTER_TYPED_TEST_SUITE_P(CompilerConformance, IdentityIsStableAcrossInstancesAndCheap,
                            ReturnsBytesForTargetWithSymbolForEveryEntry, EqualRecipesGiveEqualResults,
                            RejectsBrokenUnitWithLogAndStaysUsable, RejectsUnsupportedTargetAndNamesSupportedOnes,
                            RejectsMissingEntryAndNamesIt, RejectsUnitOfAnotherKind,
                            CompilesOnEightThreadsConcurrently);

}  // namespace kiln::test
