#include "warm/explain.hpp"

#include <gtest/gtest.h>

#include "store/disk_store.hpp"
#include "support/event_log.hpp"
#include "support/fake_compiler.hpp"
#include "support/files.hpp"
#include "support/recipes.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

class ExplainTest : public testing::Test {
 protected:
  ExplainTest() : store_(DiskStore::open({.root = folder_.path("cache")}).value()) {
    parts_.store = store_.get();
    parts_.history = &store_->history();
    parts_.digests = &digests_;
    spit(folder_.path("h.h"), "one");
  }
  Recipe recipe(const Unit& unit, Target target = Target::sm(80)) {
    Recipe recipe = recipe_for(compiler_, unit, std::move(target));
    recipe.closed = compiler_.closed(recipe);
    return recipe;
  }
  void build(const Unit& unit) { ASSERT_TRUE(Resolver(parts_).get(recipe(unit), compiler_).ok()); }
  // The one input that differs from the nearest earlier build.
  Difference only_difference(const Recipe& recipe) {
    const Explanation explanation = explain(recipe, parts_);
    EXPECT_FALSE(explanation.hit);
    EXPECT_EQ(explanation.differences.size(), 1u) << explanation.summary;
    return explanation.differences.empty() ? Difference{} : explanation.differences.front();
  }
  Unit unit(const std::string& source = "include h.h") const {
    return Unit::of_kind("fake", "unit", source).include_root(folder_.path()).option("-O2").entry("k");
  }

  TemporaryDirectory folder_;
  FakeCompiler compiler_;
  FileDigests digests_{std::string()};
  std::unique_ptr<DiskStore> store_;
  Resolver::Parts parts_;
};

TEST_F(ExplainTest, SaysHitAndWhichTier) {
  build(unit());
  const Explanation explanation = explain(recipe(unit()), parts_);
  EXPECT_TRUE(explanation.hit);
  EXPECT_NE(explanation.summary.find("disk"), std::string::npos);
}

TEST_F(ExplainTest, IsWhatTheEventOfAMissSays) {
  EventLog log;
  parts_.observer = log.observer();
  build(unit());
  EXPECT_EQ(log.of(Event::Kind::Miss).back().message, "no earlier build of this unit is known");
  build(unit("other"));
  EXPECT_EQ(log.of(Event::Kind::Miss).back().message, "the unit's source changed since the nearest earlier build");
}

TEST_F(ExplainTest, SaysThatCachingIsOffWhereThereIsNoStore) {
  parts_.store = nullptr;
  EXPECT_EQ(explain(recipe(unit("a")), parts_).summary, "miss: caching is off");
}

TEST_F(ExplainTest, SaysThatNoBuildIsKnown) {
  const Explanation explanation = explain(recipe(unit()), parts_);
  EXPECT_FALSE(explanation.hit);
  EXPECT_FALSE(explanation.nearest.has_value());
}

TEST_F(ExplainTest, NamesTheHeaderThatChangedWithBothDigests) {
  build(unit());
  spit(folder_.path("h.h"), "two");
  const Difference difference = only_difference(recipe(unit()));
  EXPECT_EQ(difference.input, "header");
  EXPECT_EQ(difference.what, folder_.path("h.h"));
  EXPECT_EQ(difference.then, sha256(std::string_view("one")).hex());
  EXPECT_EQ(difference.now, sha256(std::string_view("two")).hex());
}

TEST_F(ExplainTest, NamesTheHeaderThatIsNewlyInTheWay) {
  compiler_.looks_for_first = "before.h";
  build(unit());
  spit(folder_.path("before.h"), "");
  const Difference difference = only_difference(recipe(unit()));
  EXPECT_EQ(difference.what, folder_.path("before.h"));
  EXPECT_EQ(difference.then, "not there");
  EXPECT_EQ(difference.now, "there, and found before the one that was read");
}

TEST_F(ExplainTest, NamesTheOptionThatIsNew) {
  build(unit());
  const Difference difference = only_difference(recipe(unit().option("-DX=1")));
  EXPECT_EQ(difference.input, "option");
  EXPECT_EQ(difference.now, "-DX=1");
}

TEST_F(ExplainTest, SaysThatOptionsAreInAnotherOrder) {
  build(unit("a").option("-x").option("-y"));
  const Difference difference = only_difference(recipe(unit("a").option("-y").option("-x")));
  EXPECT_EQ(difference.what, "order");
  EXPECT_EQ(difference.then, "-O2 -x -y");
  EXPECT_EQ(difference.now, "-O2 -y -x");
}

TEST_F(ExplainTest, NamesTheEntryTheTargetTheSourceAndTheCompiler) {
  build(unit("a"));
  EXPECT_EQ(only_difference(recipe(unit("a").entry("more"))).input, "entry");
  EXPECT_EQ(only_difference(recipe(unit("a"), Target::sm(90))).now, "sm_90");
  EXPECT_EQ(only_difference(recipe(unit("b"))).input, "source");
  compiler_.version = "2";
  const Difference difference = only_difference(recipe(unit("a")));
  EXPECT_EQ(difference.input, "compiler");
  EXPECT_NE(difference.then.find("fake 1"), std::string::npos);
  EXPECT_NE(difference.now.find("fake 2"), std::string::npos);
}

TEST_F(ExplainTest, NamesTheHeaderInMemoryThatChangedCameOrWent) {
  build(unit("a").header("m.h", "one"));
  const Difference changed = only_difference(recipe(unit("a").header("m.h", "two")));
  EXPECT_EQ(changed.input, "memory header");
  EXPECT_EQ(changed.what, "m.h");
  EXPECT_EQ(changed.then, sha256(std::string_view("one")).hex());
  EXPECT_EQ(changed.now, sha256(std::string_view("two")).hex());
  const Difference came = only_difference(recipe(unit("a").header("m.h", "one").header("n.h", "")));
  EXPECT_EQ(came.what, "n.h");
  EXPECT_EQ(came.then, "");
  const Difference went = only_difference(recipe(unit("a")));
  EXPECT_EQ(went.what, "m.h");
  EXPECT_EQ(went.now, "");
}

TEST_F(ExplainTest, NamesTheIncludeFolderThatCameAndCountsWhatElseChanged) {
  build(unit("a"));
  EXPECT_EQ(only_difference(recipe(unit("a").include_root("/elsewhere"))).input, "include folder");
  const Explanation explanation = explain(recipe(unit("b").option("-g")), parts_);
  EXPECT_NE(explanation.summary.find("(and 1 more)"), std::string::npos) << explanation.summary;
}

TEST_F(ExplainTest, ComparesWithTheBuildThatHasTheFewestDifferences) {
  build(unit("a"));
  build(unit("b").option("-g").option("-h"));
  EXPECT_EQ(only_difference(recipe(unit("b").option("-g"))).then, "-h");
}

TEST_F(ExplainTest, SaysThatTheEntryIsGoneWhereNoInputChanged) {
  build(unit("a"));
  for (const std::string& file : files_below(folder_.path("cache/v1/entries"))) std::filesystem::remove(file);
  const Explanation explanation = explain(recipe(unit("a")), parts_);
  EXPECT_TRUE(explanation.differences.empty());
  EXPECT_NE(explanation.summary.find("evicted"), std::string::npos);
}

}  // namespace
}  // namespace kiln::test
