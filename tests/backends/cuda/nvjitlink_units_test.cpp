// SPDX-License-Identifier: Apache-2.0
// LinkCompiler with the real libraries: links of units, each compiled in a worker that records its file accesses.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <thread>

#include "backends/cuda/link_compiler.hpp"
#include "backends/cuda/nvjitlink_parts.hpp"
#include "base/hash.hpp"
#include "conformance/compiler_conformance.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "worker/worker_compiler.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class LinkOfUnits : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    WorkerCompiler::Options options;
    options.pool = &pool_;
    parts_ = std::make_unique<WorkerCompiler>(std::make_unique<NvrtcCompiler>(toolkit_nvrtc(), library_digests()),
                                              library_digests(), options, EventEmitter());
    linker_ = std::make_unique<LinkCompiler>(
        toolkit_linker(), *parts_, [this](const Recipe& part, const RequestContext&) { return get(part); },
        library_digests());
  }
  // Acts like a store, as long as the files do not change.
  Result<CompileResult> get(const Recipe& part) {
    const auto known = kept_.find(part.request_key());
    if (known != kept_.end() && !check(*known->second.artifact.dependency_set, part.path_roots(), library_digests())) {
      return known->second;
    }
    ++compiles_;
    auto compiled = parts_->compile(part, {});
    if (compiled && compiled->uncacheable_reason.empty()) kept_[part.request_key()] = *compiled;
    return compiled;
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(directory_.path(name)).parent_path());
    write_text(directory_.path(name), text);
    std::this_thread::sleep_for(30ms);  // old enough for its content to be trusted
  }
  Recipe recipe(const Unit& unit) {
    Recipe recipe = recipe_for(*linker_, unit, Target::sm(80));
    recipe.working_directory = directory_.path();
    recipe.self_contained = linker_->is_self_contained(recipe);
    return recipe;
  }
  Result<CompileResult> link(const Unit& unit) { return linker_->compile(recipe(unit), {}); }
  bool holds(const Result<CompileResult>& linked, const Unit& unit) {
    return !check(*linked->artifact.dependency_set, recipe(unit).path_roots(), library_digests());
  }
  // Each unit has its own header in its own root.
  Unit caller() {
    write("a/caller.h", "#define THREE 3\nextern __device__ float f(float);\n");
    return Unit::cuda("a.cu", "#include <caller.h>\nextern \"C\" __global__ void k(float* p) { *p = f(THREE); }\n")
        .with_include_root(directory_.path("a"));
  }
  Unit callee() {
    write("b/callee.h", "#define SQUARE(x) ((x) * (x))\n");
    return Unit::cuda("b.cu", "#include <callee.h>\n__device__ float f(float x) { return SQUARE(x); }\n")
        .with_include_root(directory_.path("empty"))
        .with_include_root(directory_.path("b"));
  }

  TemporaryDirectory directory_;
  WorkerPool pool_{{}};
  std::unique_ptr<WorkerCompiler> parts_;
  std::unique_ptr<LinkCompiler> linker_;
  std::map<RequestKey, CompileResult> kept_;
  int compiles_ = 0;
};

TEST_F(LinkOfUnits, OutputEqualsLinkOfCompiledParts) {
  const auto of_units = link(
      Unit::link("whole", {LinkPart::unit(Unit::cuda("a.cu", kCaller)), LinkPart::unit(Unit::cuda("b.cu", kCallee))}));
  ASSERT_TRUE(of_units.has_value()) << of_units.error().message << of_units.error().log;
  const auto linker = toolkit_linker();
  const Unit of_bytes = Unit::link(
      "whole", {LinkPart::ltoir("a", ltoir_of("a.cu", kCaller)), LinkPart::ltoir("b", ltoir_of("b.cu", kCallee))});
  EXPECT_EQ(of_units->artifact.bytes,
            linker->compile(recipe_for(*linker, of_bytes, Target::sm(80)), {}).value().artifact.bytes);
  EXPECT_EQ(of_units->uncacheable_reason, "");
}

TEST_F(LinkOfUnits, EditedHeaderOfAnyPartIsDetected) {
  const Unit unit = Unit::link("whole", {LinkPart::unit(caller()), LinkPart::unit(callee())}).with_entry("k");
  const auto linked = link(unit);
  ASSERT_TRUE(linked.has_value()) << linked.error().message << linked.error().log;
  EXPECT_EQ(linked->uncacheable_reason, "");
  const auto has = [&](std::uint16_t root, DependencySet::State state, const std::string& name) {
    const auto& items = linked->artifact.dependency_set->items;
    return std::any_of(items.begin(), items.end(), [&](const DependencySet::Dependency& item) {
      return item.root == root && item.state == state && item.name == name;
    });
  };
  EXPECT_TRUE(has(0, DependencySet::State::Read, "caller.h"));
  EXPECT_TRUE(has(1, DependencySet::State::Absent, "./"));
  EXPECT_TRUE(has(2, DependencySet::State::Read, "callee.h"));
  EXPECT_TRUE(holds(linked, unit));
  write("b/callee.h", "#define SQUARE(x) ((x) * (x) * (x))\n");
  EXPECT_FALSE(holds(linked, unit));
  const auto again = link(unit);
  ASSERT_TRUE(again.has_value());
  EXPECT_NE(again->artifact.bytes, linked->artifact.bytes);
  EXPECT_TRUE(holds(again, unit));
  write("empty/callee.h", "#define SQUARE(x) 1\n");
  EXPECT_FALSE(holds(again, unit));
}

TEST_F(LinkOfUnits, PartIsCompiledOnceForTwoLinks) {
  const Unit shared = callee();
  ASSERT_TRUE(link(Unit::link("one", {LinkPart::unit(caller()), LinkPart::unit(shared)})).has_value());
  EXPECT_EQ(compiles_, 2);
  const Unit other =
      Unit::cuda("c.cu", "extern __device__ float f(float);\n__global__ void c(float* p) { *p = f(1); }");
  ASSERT_TRUE(link(Unit::link("two", {LinkPart::unit(other), LinkPart::unit(shared)})).has_value());
  EXPECT_EQ(compiles_, 3);
}

TEST_F(LinkOfUnits, EntryOfPartHasSymbolOfPart) {
  const Unit part = Unit::cuda("t.cu", "template <int N> __global__ void t(int* p) { *p = N; }").with_entry("t<1 + 2>");
  const Unit whole = Unit::link("whole", {LinkPart::unit(part), LinkPart::unit(Unit::cuda("a.cu", kCaller)),
                                          LinkPart::ltoir("b", ltoir_of("b.cu", kCallee))});
  const auto linked = link(whole.with_entry("k").with_entry("t<1 + 2>"));
  ASSERT_TRUE(linked.has_value()) << linked.error().message << linked.error().log;
  EXPECT_EQ(*linked->artifact.symbol("t<1 + 2>"), "_Z1tILi3EEvPi");
  EXPECT_EQ(*linked->artifact.symbol("k"), "k");
}

TEST_F(LinkOfUnits, UncacheablePartMakesLinkUncacheable) {
  const Unit timely = Unit::cuda("t.cu", "__global__ void t(char* p) { *p = __TIME__[0]; }");
  const auto linked = link(Unit::link("whole", {LinkPart::unit(timely)}));
  ASSERT_TRUE(linked.has_value()) << linked.error().message;
  EXPECT_NE(linked->uncacheable_reason.find("t.cu"), std::string::npos) << linked->uncacheable_reason;
  EXPECT_NE(linked->uncacheable_reason.find("__TIME__"), std::string::npos) << linked->uncacheable_reason;
}

TEST_F(LinkOfUnits, LineInformationInPartMakesLinkUncacheable) {
  const auto linked =
      link(Unit::link("whole", {LinkPart::unit(caller().with_option("-lineinfo")), LinkPart::unit(callee())}));
  ASSERT_TRUE(linked.has_value()) << linked.error().message;
  EXPECT_NE(linked->uncacheable_reason, "");
}

TEST_F(LinkOfUnits, FailedPartIsNamedAndRetriedOnlyAfterHeaderChange) {
  const Unit part = callee();
  write("b/callee.h", "this is no C++\n");
  const Unit unit = Unit::link("whole", {LinkPart::unit(caller()), LinkPart::unit(part)});
  const auto linked = link(unit);
  ASSERT_FALSE(linked.has_value());
  EXPECT_EQ(linked.error().code, Code::CompileFailed);
  EXPECT_NE(linked.error().message.find("'b.cu'"), std::string::npos) << linked.error().message;
  EXPECT_FALSE(linked.error().log.empty());
  EXPECT_FALSE(linker_->should_retry(recipe(unit)));
  write("b/callee.h", "#define SQUARE(x) 1\n");
  EXPECT_TRUE(linker_->should_retry(recipe(unit)));
}

TEST_F(LinkOfUnits, FailedLinkIsRetriedOnlyAfterHeaderChange) {
  const Unit unit = Unit::link("whole", {LinkPart::unit(caller())});
  ASSERT_FALSE(link(unit).has_value());
  EXPECT_FALSE(linker_->should_retry(recipe(unit)));
  write("a/caller.h", "#define THREE 3\n__device__ float f(float) { return 1; }\n");
  EXPECT_TRUE(linker_->should_retry(recipe(unit)));
}

TEST_F(LinkOfUnits, IsSelfContainedIfAllPartsAre) {
  const Unit bytes = Unit::link("whole", {LinkPart::ltoir("b", ltoir_of("b.cu", kCallee))});
  const Unit closed = Unit::link("whole", {LinkPart::unit(Unit::cuda("a.cu", kCaller))});
  EXPECT_TRUE(recipe(bytes).self_contained);
  EXPECT_TRUE(recipe(closed).self_contained);
  EXPECT_FALSE(recipe(closed.with_option("-Xptxas=-optf")).self_contained);
  EXPECT_FALSE(recipe(Unit::link("whole", {LinkPart::unit(caller())})).self_contained);
  EXPECT_FALSE(
      recipe(Unit::link("whole", {LinkPart::unit(Unit::cuda("a.cu", kCaller).with_option("-G"))})).self_contained);
}

TEST_F(LinkOfUnits, RejectsPartsOfOtherKinds) {
  const auto linked = link(Unit::link("whole", {LinkPart::unit(Unit::opencl("a.cl", "kernel void k() {}"))}));
  ASSERT_FALSE(linked.has_value());
  EXPECT_EQ(linked.error().code, Code::InvalidArgument);
  EXPECT_NE(linked.error().message.find("a.cl"), std::string::npos);
}

TEST_F(LinkOfUnits, LinksBytesWithoutCompilerOfUnits) {
  NvrtcCompiler none("/nowhere/libnvrtc.so.13", library_digests());
  LinkCompiler linker(
      toolkit_linker(), none,
      [&](const Recipe& part, const RequestContext& context) { return none.compile(part, context); },
      library_digests());
  const Unit unit = Unit::link("whole", {LinkPart::ltoir("b", ltoir_of("b.cu", kCallee))});
  const auto linked = linker.compile(recipe_for(linker, unit, Target::sm(80)), {});
  ASSERT_TRUE(linked.has_value()) << linked.error().message;
  EXPECT_EQ(linked->uncacheable_reason, "");
  const Unit of_unit = Unit::link("whole", {LinkPart::unit(Unit::cuda("b.cu", kCallee))});
  EXPECT_EQ(linker.compile(recipe_for(linker, of_unit, Target::sm(80)), {}).error().code, Code::Unavailable);
}

TEST(LinkClosure, MergesRootsAndRelationsOfParts) {
  DependencySet part;
  part.items = {{0, DependencySet::State::Read, "h.h", sha256("1"), 0},
                {1, DependencySet::State::Read, "h.h", sha256("1"), 0},
                {DependencySet::kWorkingDirectory, DependencySet::State::Absent, "h.h", {}, 0},
                {DependencySet::kAbsolute, DependencySet::State::Read, "/h.h", sha256("2"), 0}};
  part.duplicate_files = {{0, 1, true}};
  part.nested_roots = {{0, 1, "/in"}, {DependencySet::kWorkingDirectory, 0, "r"}};
  DependencySet whole;
  add_dependency_set(whole, part, {0, 2, 4});
  EXPECT_EQ(whole, part);
  part.embeds_paths = true;
  add_dependency_set(whole, part, {2, 2, 4});
  ASSERT_EQ(whole.items.size(), 8U);
  EXPECT_EQ(whole.items[4].root, 2);
  EXPECT_EQ(whole.items[5].root, 3);
  EXPECT_EQ(whole.items[6].root, DependencySet::kWorkingDirectory);
  EXPECT_EQ(whole.items[7].root, DependencySet::kAbsolute);
  EXPECT_EQ(whole.duplicate_files[1], (DependencySet::DuplicateFiles{4, 5, true}));
  EXPECT_EQ(whole.nested_roots[2], (DependencySet::NestedRoot{2, 3, "/in"}));
  EXPECT_EQ(whole.nested_roots[3], (DependencySet::NestedRoot{DependencySet::kWorkingDirectory, 2, "r"}));
  EXPECT_TRUE(whole.embeds_paths);
  EXPECT_FALSE(whole.embeds_mtimes);
}

TEST(LinkClosure, PutsTheRootsOfTheCompilerAfterThoseOfAllParts) {
  DependencySet part;
  part.items = {{0, DependencySet::State::Read, "own.h", sha256("1"), 0},
                {1, DependencySet::State::Read, "cub/cub.cuh", sha256("2"), 0}};
  DependencySet whole;
  add_dependency_set(whole, part, {0, 1, 3});
  add_dependency_set(whole, part, {2, 1, 3});
  EXPECT_EQ(whole.items[0].root, 0);
  EXPECT_EQ(whole.items[1].root, 3);
  EXPECT_EQ(whole.items[2].root, 2);
  EXPECT_EQ(whole.items[3].root, 3);
}

struct LinkOfUnitsFixture {
  static constexpr bool reproducible = true;
  NvrtcCompiler nvrtc{toolkit_nvrtc(), library_digests()};
  std::unique_ptr<Compiler> compiler() {
    return std::make_unique<LinkCompiler>(
        toolkit_linker(), nvrtc,
        [this](const Recipe& part, const RequestContext& context) { return nvrtc.compile(part, context); },
        library_digests());
  }
  Unit unit() {
    return Unit::link("whole",
                      {LinkPart::unit(Unit::cuda("a.cu", kCaller)), LinkPart::unit(Unit::cuda("b.cu", kCallee))})
        .with_entry("k")
        .with_entry("l");
  }
  Unit broken() {
    return Unit::link("broken", {LinkPart::unit(Unit::cuda("a.cu", "__global__ void k() { this is no C++ }"))});
  }
  Target target() { return Target::sm(80); }
  Target unsupported() { return Target::sm(35); }
  std::string possible() { return "sm_80"; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(LinkOfUnits, CompilerConformance, LinkOfUnitsFixture);

}  // namespace
}  // namespace kiln::test
