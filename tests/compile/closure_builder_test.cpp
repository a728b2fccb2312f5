#include "compile/closure_builder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/hash.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "compile/worker_compiler.hpp"
#include "support/files.hpp"
#include "support/recipes.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class ClosureBuilder : public testing::Test {
 protected:
  ClosureBuilder() {
    fs::create_directories(folder_.path("first"));
    fs::create_directories(folder_.path("second/sub"));
    spit(folder_.path("second/sub/h.h"), "int x;");
  }
  Recipe recipe() const {
    const Unit unit = Unit::cuda("k.cu", "").include_root(folder_.path("first")).include_root(folder_.path("second"));
    return {unit, Target::sm(80), {}, folder_.path()};
  }
  Observation read(const std::string& path) const {
    const auto stamp = stamp_of(path.c_str()).value();
    // Asked well after the file was written.
    return {path, Observation::State::Read, false, stamp, stamp.changed_ns + 1'000'000'000};
  }
  static Observation missing(const std::string& path) { return {path, Observation::State::Missing, false, {}, 0}; }
  BuiltClosure build(const std::vector<Observation>& observations, bool debug = false, std::string_view bytes = {}) {
    return build_closure(recipe(), observations, debug, bytes, digests_);
  }

  TemporaryDirectory folder_;
  FileDigests digests_{std::string()};
};

TEST_F(ClosureBuilder, NamesFilesByTheirRootAndContent) {
  const BuiltClosure built = build({read(folder_.path("second/sub/h.h"))});
  EXPECT_EQ(built.not_cacheable, "");
  ASSERT_EQ(built.closure.items.size(), 1u);
  const Closure::Item& item = built.closure.items[0];
  EXPECT_EQ(item.root, 1);
  EXPECT_EQ(item.name, "sub/h.h");
  EXPECT_EQ(item.digest, sha256(std::string_view("int x;")));
  EXPECT_FALSE(built.closure.located);
}

TEST_F(ClosureBuilder, LetsOneAbsentFolderStandForAllThatIsAbsentInIt) {
  const BuiltClosure built = build({missing(folder_.path("first/cub/a.h")), missing(folder_.path("first/cub/b/c.h")),
                                    missing(folder_.path("second/sub/none.h"))});
  ASSERT_EQ(built.closure.items.size(), 2u);
  EXPECT_EQ(built.closure.items[0].name, "cub/");
  EXPECT_EQ(built.closure.items[0].state, Closure::State::Absent);
  EXPECT_EQ(built.closure.items[1].name, "sub/none.h");
  // The folder appears: the closure no longer holds.
  EXPECT_FALSE(check(built.closure, recipe().places(), digests_).has_value());
  fs::create_directories(folder_.path("first/cub"));
  EXPECT_TRUE(check(built.closure, recipe().places(), digests_).has_value());
}

TEST_F(ClosureBuilder, DoesNotTrustAFileThatChangedAfterItWasRead) {
  const Observation before = read(folder_.path("second/sub/h.h"));
  spit(folder_.path("second/sub/h.h"), "int other;");
  EXPECT_NE(build({before}).not_cacheable, "");
}

TEST_F(ClosureBuilder, DoesNotTrustAFileThatWasWrittenAsTheCompilerReadIt) {
  Observation young = read(folder_.path("second/sub/h.h"));
  young.asked_ns = young.stamp.changed_ns + 1'000'000;
  EXPECT_NE(build({young}).not_cacheable, "");
}

TEST_F(ClosureBuilder, DoesNotTrustAFileThatWasThereAtOneMomentAndNotAtAnother) {
  Observation both = read(folder_.path("second/sub/h.h"));
  both.both = true;
  EXPECT_NE(build({both}).not_cacheable, "");
}

TEST_F(ClosureBuilder, BindsTheResultToItsPlaceWherePathsAreInTheOutput) {
  const std::vector<Observation> observations{read(folder_.path("second/sub/h.h"))};
  EXPECT_TRUE(build(observations, true).closure.timed);
  EXPECT_TRUE(build(observations, false, "…" + folder_.path("second/sub/") + "h.h…").closure.located);
  spit(folder_.path("second/sub/h.h"), "const char* f = __FILE__;");
  EXPECT_TRUE(build({read(folder_.path("second/sub/h.h"))}).closure.located);
}

TEST_F(ClosureBuilder, DoesNotKeepWhatAHeaderTiesToTheTimeOfTheCompile) {
  spit(folder_.path("second/sub/h.h"), "const char* t = __TIME__;");
  EXPECT_NE(build({read(folder_.path("second/sub/h.h"))}).not_cacheable.find("__TIME__"), std::string::npos);
}

TEST(BlindWorker, WhatNobodySawIsNotKept) {
  FileDigests digests{std::string()};
  WorkerPool::Options blind;
  blind.program = KILN_BLIND_WORKER;
  WorkerPool pool(blind);
  WorkerCompiler::Options options;
  options.pool = &pool;
  WorkerCompiler compiler(std::make_unique<NvrtcCompiler>("", digests), digests, options, {});
  const auto compiled = compiler.compile(recipe_for(compiler, Unit::cuda("k.cu", "#include <x.h>"), Target::sm(80)));
  ASSERT_TRUE(compiled.ok()) << compiled.error().message;
  EXPECT_EQ(compiled->artifact.bytes.view(), "bytes");
  EXPECT_NE(compiled->not_cacheable, "");
}

}  // namespace
}  // namespace kiln::test
