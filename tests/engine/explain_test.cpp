// SPDX-License-Identifier: Apache-2.0
#include "engine/explain.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "cache/disk_store.hpp"
#include "support/fakes/fake_compiler.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

class ExplainTest : public testing::Test {
 protected:
  ExplainTest() : store_(DiskStore::open({.root = directory_.path("cache")}).value()) {
    params_.store = store_.get();
    params_.history = &store_->history();
    params_.digests = &digests_;
    write_text(directory_.path("h.h"), "one");
  }
  Recipe recipe(const Unit& unit, Target target = Target::sm(80)) {
    Recipe recipe = recipe_for(compiler_, unit, std::move(target));
    recipe.self_contained = compiler_.is_self_contained(recipe);
    return recipe;
  }
  void build(const Unit& unit) { ASSERT_TRUE(Resolver(params_).get(recipe(unit), compiler_, {}).has_value()); }
  // Returns the only difference from the nearest earlier build.
  InputDifference only_difference(const Recipe& recipe) {
    const Explanation explanation = explain(recipe, params_, {});
    EXPECT_FALSE(explanation.hit);
    EXPECT_EQ(explanation.differences.size(), 1u) << explanation.summary;
    return explanation.differences.empty() ? InputDifference{} : explanation.differences.front();
  }
  Unit unit(const std::string& source = "include h.h") const {
    return Unit::of_kind("fake", "unit", source)
        .with_include_root(directory_.path())
        .with_option("-O2")
        .with_entry("k");
  }

  TemporaryDirectory directory_;
  FakeCompiler compiler_;
  FileDigestCache digests_{std::string()};
  std::unique_ptr<DiskStore> store_;
  Resolver::Params params_;
};

TEST_F(ExplainTest, ReportsHitAndTier) {
  build(unit());
  const Explanation explanation = explain(recipe(unit()), params_, {});
  EXPECT_TRUE(explanation.hit);
  EXPECT_NE(explanation.summary.find("disk"), std::string::npos);
}

TEST_F(ExplainTest, MissEventHasTheSameText) {
  EventLog log;
  params_.emitter = log.emitter();
  build(unit());
  EXPECT_EQ(log.of(Event::Kind::Miss).back().message, "no earlier build of this unit is recorded");
  build(unit("other"));
  EXPECT_EQ(log.of(Event::Kind::Miss).back().message, "the unit's source changed since the nearest earlier build");
}

TEST_F(ExplainTest, ReportsDisabledCacheWithoutStore) {
  params_.store = nullptr;
  EXPECT_EQ(explain(recipe(unit("a")), params_, {}).summary, "miss: caching is off");
}

TEST_F(ExplainTest, ReportsMissingHistory) {
  const Explanation explanation = explain(recipe(unit()), params_, {});
  EXPECT_FALSE(explanation.hit);
  EXPECT_FALSE(explanation.nearest.has_value());
}

TEST_F(ExplainTest, NamesChangedHeaderWithBothDigests) {
  build(unit());
  write_text(directory_.path("h.h"), "two");
  const InputDifference difference = only_difference(recipe(unit()));
  EXPECT_EQ(difference.input, "header");
  EXPECT_EQ(difference.name, directory_.path("h.h"));
  EXPECT_EQ(difference.before, sha256(std::string_view("one")).hex());
  EXPECT_EQ(difference.after, sha256(std::string_view("two")).hex());
}

TEST_F(ExplainTest, NamesHeaderWithNewModificationTimeOnly) {
  compiler_.embeds_mtimes = true;
  build(unit());
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(directory_.path("h.h"), now - std::chrono::hours(1));
  const InputDifference difference = only_difference(recipe(unit()));
  EXPECT_EQ(difference.name, directory_.path("h.h"));
  EXPECT_EQ(difference.before, sha256(std::string_view("one")).hex());
  EXPECT_EQ(difference.after, "same content with a different modification time, which the output contains");
}

TEST_F(ExplainTest, NamesNewHeaderThatShadowsAnother) {
  compiler_.looks_for_first = "before.h";
  build(unit());
  write_text(directory_.path("before.h"), "");
  const InputDifference difference = only_difference(recipe(unit()));
  EXPECT_EQ(difference.name, directory_.path("before.h"));
  EXPECT_EQ(difference.before, "missing");
  EXPECT_EQ(difference.after, "present, and found before the file that was read");
}

TEST_F(ExplainTest, NamesNewOption) {
  build(unit());
  const InputDifference difference = only_difference(recipe(unit().with_option("-DX=1")));
  EXPECT_EQ(difference.input, "option");
  EXPECT_EQ(difference.after, "-DX=1");
}

TEST_F(ExplainTest, ReportsReorderedOptions) {
  build(unit("a").with_option("-x").with_option("-y"));
  const InputDifference difference = only_difference(recipe(unit("a").with_option("-y").with_option("-x")));
  EXPECT_EQ(difference.name, "order");
  EXPECT_EQ(difference.before, "-O2 -x -y");
  EXPECT_EQ(difference.after, "-O2 -y -x");
}

TEST_F(ExplainTest, NamesEntryTargetSourceAndCompiler) {
  build(unit("a"));
  EXPECT_EQ(only_difference(recipe(unit("a").with_entry("more"))).input, "entry");
  EXPECT_EQ(only_difference(recipe(unit("a"), Target::sm(90))).after, "sm_90");
  EXPECT_EQ(only_difference(recipe(unit("b"))).input, "source");
  compiler_.version = "2";
  const InputDifference difference = only_difference(recipe(unit("a")));
  EXPECT_EQ(difference.input, "compiler");
  EXPECT_NE(difference.before.find("fake 1"), std::string::npos);
  EXPECT_NE(difference.after.find("fake 2"), std::string::npos);
}

TEST_F(ExplainTest, NamesChangedAddedOrRemovedMemoryHeader) {
  build(unit("a").with_header("m.h", "one"));
  const InputDifference changed = only_difference(recipe(unit("a").with_header("m.h", "two")));
  EXPECT_EQ(changed.input, "memory header");
  EXPECT_EQ(changed.name, "m.h");
  EXPECT_EQ(changed.before, sha256(std::string_view("one")).hex());
  EXPECT_EQ(changed.after, sha256(std::string_view("two")).hex());
  const InputDifference came = only_difference(recipe(unit("a").with_header("m.h", "one").with_header("n.h", "")));
  EXPECT_EQ(came.name, "n.h");
  EXPECT_EQ(came.before, "");
  const InputDifference went = only_difference(recipe(unit("a")));
  EXPECT_EQ(went.name, "m.h");
  EXPECT_EQ(went.after, "");
}

TEST_F(ExplainTest, NamesAddedIncludeDirectoryAndCountsOtherChanges) {
  build(unit("a"));
  EXPECT_EQ(only_difference(recipe(unit("a").with_include_root("/elsewhere"))).input, "include directory");
  const Explanation explanation = explain(recipe(unit("b").with_option("-g")), params_, {});
  EXPECT_NE(explanation.summary.find("(and 1 more)"), std::string::npos) << explanation.summary;
}

TEST_F(ExplainTest, ComparesWithBuildWithFewestDifferences) {
  build(unit("a"));
  build(unit("b").with_option("-g").with_option("-h"));
  EXPECT_EQ(only_difference(recipe(unit("b").with_option("-g"))).before, "-h");
}

TEST_F(ExplainTest, ReportsMissingEntryIfNoInputChanged) {
  build(unit("a"));
  for (const std::string& file : files_below(directory_.path("cache/v1/entries"))) std::filesystem::remove(file);
  const Explanation explanation = explain(recipe(unit("a")), params_, {});
  EXPECT_TRUE(explanation.differences.empty());
  EXPECT_NE(explanation.summary.find("evicted"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
