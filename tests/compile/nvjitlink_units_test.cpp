// PartsCompiler on the real libraries: links of units, each compiled in a worker that sees what it reads.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <thread>

#include "base/hash.hpp"
#include "compile/nvjitlink_parts.hpp"
#include "compile/parts_compiler.hpp"
#include "compile/worker_compiler.hpp"
#include "conformance/compiler_conformance.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

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
                                              library_digests(), options, Observer());
    linker_ = std::make_unique<PartsCompiler>(
        toolkit_linker(), *parts_, [this](const Recipe& part) { return get(part); }, library_digests());
  }
  // As a store would, as far as the files stay as they are.
  Result<Compiled> get(const Recipe& part) {
    const auto known = kept_.find(part.request_key());
    if (known != kept_.end() && !check(*known->second.artifact.closure, part.places(), library_digests())) {
      return known->second;
    }
    ++compiles_;
    auto compiled = parts_->compile(part);
    if (compiled && compiled->not_cacheable.empty()) kept_[part.request_key()] = *compiled;
    return compiled;
  }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder_.path(name)).parent_path());
    spit(folder_.path(name), text);
    std::this_thread::sleep_for(30ms);  // long enough ago for its content to be trusted
  }
  Recipe recipe(const Unit& unit) {
    Recipe recipe = recipe_for(*linker_, unit, Target::sm(80));
    recipe.working_directory = folder_.path();
    recipe.closed = linker_->closed(recipe);
    return recipe;
  }
  Result<Compiled> link(const Unit& unit) { return linker_->compile(recipe(unit)); }
  bool holds(const Result<Compiled>& linked, const Unit& unit) {
    return !check(*linked->artifact.closure, recipe(unit).places(), library_digests());
  }
  // Each with a header of its own, in a root of its own.
  Unit caller() {
    write("a/caller.h", "#define THREE 3\nextern __device__ float f(float);\n");
    return Unit::cuda("a.cu", "#include <caller.h>\nextern \"C\" __global__ void k(float* p) { *p = f(THREE); }\n")
        .include_root(folder_.path("a"));
  }
  Unit callee() {
    write("b/callee.h", "#define SQUARE(x) ((x) * (x))\n");
    return Unit::cuda("b.cu", "#include <callee.h>\n__device__ float f(float x) { return SQUARE(x); }\n")
        .include_root(folder_.path("empty"))
        .include_root(folder_.path("b"));
  }

  TemporaryDirectory folder_;
  WorkerPool pool_{{}};
  std::unique_ptr<WorkerCompiler> parts_;
  std::unique_ptr<PartsCompiler> linker_;
  std::map<RequestKey, Compiled> kept_;
  int compiles_ = 0;
};

TEST_F(LinkOfUnits, GivesTheSameBytesAsLinkingWhatTheirCompilesGive) {
  const auto of_units = link(
      Unit::link("whole", {LinkPart::unit(Unit::cuda("a.cu", kCaller)), LinkPart::unit(Unit::cuda("b.cu", kCallee))}));
  ASSERT_TRUE(of_units.ok()) << of_units.error().message << of_units.error().log;
  const auto linker = toolkit_linker();
  const Unit of_bytes = Unit::link(
      "whole", {LinkPart::ltoir("a", ltoir_of("a.cu", kCaller)), LinkPart::ltoir("b", ltoir_of("b.cu", kCallee))});
  EXPECT_EQ(of_units->artifact.bytes,
            linker->compile(recipe_for(*linker, of_bytes, Target::sm(80))).value().artifact.bytes);
  EXPECT_EQ(of_units->not_cacheable, "");
}

TEST_F(LinkOfUnits, AnEditedHeaderOfAnyPartIsAnotherInput) {
  const Unit unit = Unit::link("whole", {LinkPart::unit(caller()), LinkPart::unit(callee())}).entry("k");
  const auto linked = link(unit);
  ASSERT_TRUE(linked.ok()) << linked.error().message << linked.error().log;
  EXPECT_EQ(linked->not_cacheable, "");
  const auto has = [&](std::uint16_t root, Closure::State state, const std::string& name) {
    const auto& items = linked->artifact.closure->items;
    return std::any_of(items.begin(), items.end(), [&](const Closure::Item& item) {
      return item.root == root && item.state == state && item.name == name;
    });
  };
  EXPECT_TRUE(has(0, Closure::State::Read, "caller.h"));
  EXPECT_TRUE(has(1, Closure::State::Absent, "./"));
  EXPECT_TRUE(has(2, Closure::State::Read, "callee.h"));
  EXPECT_TRUE(holds(linked, unit));
  write("b/callee.h", "#define SQUARE(x) ((x) * (x) * (x))\n");
  EXPECT_FALSE(holds(linked, unit));
  const auto again = link(unit);
  ASSERT_TRUE(again.ok());
  EXPECT_NE(again->artifact.bytes, linked->artifact.bytes);
  EXPECT_TRUE(holds(again, unit));
  write("empty/callee.h", "#define SQUARE(x) 1\n");
  EXPECT_FALSE(holds(again, unit));
}

TEST_F(LinkOfUnits, APartIsCompiledOnceForTwoLinks) {
  const Unit shared = callee();
  ASSERT_TRUE(link(Unit::link("one", {LinkPart::unit(caller()), LinkPart::unit(shared)})).ok());
  EXPECT_EQ(compiles_, 2);
  const Unit other =
      Unit::cuda("c.cu", "extern __device__ float f(float);\n__global__ void c(float* p) { *p = f(1); }");
  ASSERT_TRUE(link(Unit::link("two", {LinkPart::unit(other), LinkPart::unit(shared)})).ok());
  EXPECT_EQ(compiles_, 3);
}

TEST_F(LinkOfUnits, AnEntryOfAPartHasThePartsSymbol) {
  const Unit part = Unit::cuda("t.cu", "template <int N> __global__ void t(int* p) { *p = N; }").entry("t<1 + 2>");
  const Unit whole = Unit::link("whole", {LinkPart::unit(part), LinkPart::unit(Unit::cuda("a.cu", kCaller)),
                                          LinkPart::ltoir("b", ltoir_of("b.cu", kCallee))});
  const auto linked = link(whole.entry("k").entry("t<1 + 2>"));
  ASSERT_TRUE(linked.ok()) << linked.error().message << linked.error().log;
  EXPECT_EQ(*linked->artifact.symbol("t<1 + 2>"), "_Z1tILi3EEvPi");
  EXPECT_EQ(*linked->artifact.symbol("k"), "k");
}

TEST_F(LinkOfUnits, WhatHasAPartThatMayNotBeKeptMayNotBeKept) {
  const Unit timely = Unit::cuda("t.cu", "__global__ void t(char* p) { *p = __TIME__[0]; }");
  const auto linked = link(Unit::link("whole", {LinkPart::unit(timely)}));
  ASSERT_TRUE(linked.ok()) << linked.error().message;
  EXPECT_NE(linked->not_cacheable.find("t.cu"), std::string::npos) << linked->not_cacheable;
  EXPECT_NE(linked->not_cacheable.find("__TIME__"), std::string::npos) << linked->not_cacheable;
}

TEST_F(LinkOfUnits, LineInformationInAPartKeepsTheWholeFromBeingKept) {
  const auto linked =
      link(Unit::link("whole", {LinkPart::unit(caller().option("-lineinfo")), LinkPart::unit(callee())}));
  ASSERT_TRUE(linked.ok()) << linked.error().message;
  EXPECT_NE(linked->not_cacheable, "");
}

TEST_F(LinkOfUnits, ARefusedPartIsNamedAndNotTriedAgainUntilItsHeaderChanges) {
  const Unit part = callee();
  write("b/callee.h", "this is no C++\n");
  const Unit unit = Unit::link("whole", {LinkPart::unit(caller()), LinkPart::unit(part)});
  const auto linked = link(unit);
  ASSERT_FALSE(linked.ok());
  EXPECT_EQ(linked.error().code, Code::CompileFailed);
  EXPECT_NE(linked.error().message.find("'b.cu'"), std::string::npos) << linked.error().message;
  EXPECT_FALSE(linked.error().log.empty());
  EXPECT_FALSE(linker_->worth_another_try(recipe(unit)));
  write("b/callee.h", "#define SQUARE(x) 1\n");
  EXPECT_TRUE(linker_->worth_another_try(recipe(unit)));
}

TEST_F(LinkOfUnits, ARefusedLinkIsNotTriedAgainUntilAHeaderChanges) {
  const Unit unit = Unit::link("whole", {LinkPart::unit(caller())});
  ASSERT_FALSE(link(unit).ok());
  EXPECT_FALSE(linker_->worth_another_try(recipe(unit)));
  write("a/caller.h", "#define THREE 3\n__device__ float f(float) { return 1; }\n");
  EXPECT_TRUE(linker_->worth_another_try(recipe(unit)));
}

TEST_F(LinkOfUnits, IsClosedWhereAllItsPartsAre) {
  const Unit bytes = Unit::link("whole", {LinkPart::ltoir("b", ltoir_of("b.cu", kCallee))});
  const Unit closed = Unit::link("whole", {LinkPart::unit(Unit::cuda("a.cu", kCaller))});
  EXPECT_TRUE(recipe(bytes).closed);
  EXPECT_TRUE(recipe(closed).closed);
  EXPECT_FALSE(recipe(closed.option("-Xptxas=-optf")).closed);
  EXPECT_FALSE(recipe(Unit::link("whole", {LinkPart::unit(caller())})).closed);
  EXPECT_FALSE(recipe(Unit::link("whole", {LinkPart::unit(Unit::cuda("a.cu", kCaller).option("-G"))})).closed);
}

TEST_F(LinkOfUnits, UnitsOfOtherKindsAreNoParts) {
  const auto linked = link(Unit::link("whole", {LinkPart::unit(Unit::opencl("a.cl", "kernel void k() {}"))}));
  ASSERT_FALSE(linked.ok());
  EXPECT_EQ(linked.error().code, Code::InvalidArgument);
  EXPECT_NE(linked.error().message.find("a.cl"), std::string::npos);
}

TEST_F(LinkOfUnits, BytesAreLinkedWhereThereIsNoCompilerOfUnits) {
  NvrtcCompiler none("/nowhere/libnvrtc.so.13", library_digests());
  PartsCompiler linker(
      toolkit_linker(), none, [&](const Recipe& part) { return none.compile(part); }, library_digests());
  const Unit unit = Unit::link("whole", {LinkPart::ltoir("b", ltoir_of("b.cu", kCallee))});
  const auto linked = linker.compile(recipe_for(linker, unit, Target::sm(80)));
  ASSERT_TRUE(linked.ok()) << linked.error().message;
  EXPECT_EQ(linked->not_cacheable, "");
  const Unit of_unit = Unit::link("whole", {LinkPart::unit(Unit::cuda("b.cu", kCallee))});
  EXPECT_EQ(linker.compile(recipe_for(linker, of_unit, Target::sm(80))).error().code, Code::Unavailable);
}

TEST(LinkClosure, MovesRootsTwinsAndNestingsOfAPartToTheirPlacesInTheWhole) {
  Closure part;
  part.items = {{0, Closure::State::Read, "h.h", sha256("1"), 0},
                {1, Closure::State::Read, "h.h", sha256("1"), 0},
                {Closure::kWorkingDirectory, Closure::State::Absent, "h.h", {}, 0},
                {Closure::kAbsolute, Closure::State::Read, "/h.h", sha256("2"), 0}};
  part.twins = {{0, 1, true}};
  part.nestings = {{0, 1, "/in"}, {Closure::kWorkingDirectory, 0, "r"}};
  Closure whole;
  add_closure(whole, part, 0);
  EXPECT_EQ(whole, part);
  part.located = true;
  add_closure(whole, part, 2);
  ASSERT_EQ(whole.items.size(), 8U);
  EXPECT_EQ(whole.items[4].root, 2);
  EXPECT_EQ(whole.items[5].root, 3);
  EXPECT_EQ(whole.items[6].root, Closure::kWorkingDirectory);
  EXPECT_EQ(whole.items[7].root, Closure::kAbsolute);
  EXPECT_EQ(whole.twins[1], (Closure::Twins{4, 5, true}));
  EXPECT_EQ(whole.nestings[2], (Closure::Nesting{2, 3, "/in"}));
  EXPECT_EQ(whole.nestings[3], (Closure::Nesting{Closure::kWorkingDirectory, 2, "r"}));
  EXPECT_TRUE(whole.located);
  EXPECT_FALSE(whole.timed);
}

struct LinkOfUnitsFixture {
  static constexpr bool reproducible = true;
  NvrtcCompiler nvrtc{toolkit_nvrtc(), library_digests()};
  std::unique_ptr<Compiler> compiler() {
    return std::make_unique<PartsCompiler>(
        toolkit_linker(), nvrtc, [this](const Recipe& part) { return nvrtc.compile(part); }, library_digests());
  }
  Unit unit() {
    return Unit::link("whole",
                      {LinkPart::unit(Unit::cuda("a.cu", kCaller)), LinkPart::unit(Unit::cuda("b.cu", kCallee))})
        .entry("k")
        .entry("l");
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
