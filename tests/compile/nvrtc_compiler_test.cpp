// NvrtcCompiler and WorkerCompiler on the real library: what they refuse, what may be kept, and what a closure says.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "compile/nvrtc_compiler.hpp"
#include "compile/worker_compiler.hpp"
#include "conformance/compiler_conformance.hpp"
#include "conformance/in_worker.hpp"
#include "support/event_log.hpp"
#include "support/files.hpp"
#include "support/recipes.hpp"
#include "support/temporary_directory.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kClosed = "extern \"C\" __global__ void k(int* p) { *p = 7; }\n";

class Nvrtc : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    auto inner = std::make_unique<NvrtcCompiler>(toolkit_nvrtc(), digests());
    WorkerCompiler::Options options;
    options.pool = &pool_;
    compiler_ = std::make_unique<WorkerCompiler>(std::move(inner), digests(), options, events_.observer());
  }
  // One for all tests: digesting libnvrtc takes a while.
  static FileDigests& digests() {
    static FileDigests digests{std::string()};
    return digests;
  }
  // Written long enough ago for its content to be trusted.
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder_.path(name)).parent_path());
    spit(folder_.path(name), text);
  }
  Recipe recipe(const Unit& unit, const Target& target = Target::sm(80)) {
    Recipe recipe = recipe_for(*compiler_, unit, target);
    recipe.working_directory = folder_.path();
    return recipe;
  }
  Result<Compiled> compile(const Unit& unit, const Target& target = Target::sm(80)) {
    std::this_thread::sleep_for(30ms);
    return compiler_->compile(recipe(unit, target));
  }
  std::string why_not_kept(const Unit& unit) {
    const auto compiled = compile(unit);
    EXPECT_TRUE(compiled.ok()) << compiled.error().message << compiled.error().log;
    return compiled ? compiled->not_cacheable : "";
  }

  TemporaryDirectory folder_;
  EventLog events_;
  WorkerPool pool_{{}};
  std::unique_ptr<WorkerCompiler> compiler_;
};

TEST_F(Nvrtc, OptionsThatNameFilesOrRepeatTheTargetAreRefusedByName) {
  for (const char* option :
       {"-arch=sm_90", "--gpu-architecture=sm_90", "-pch", "--pch-dir=x", "--create-pch=x", "--use-pch=x", "-time=x",
        "--fdevice-time-trace=x", "--ptxas-options=--options-file=x", "-Xptxas=-optf"}) {
    const auto compiled = compile(Unit::cuda("k.cu", kClosed).option(option));
    ASSERT_FALSE(compiled.ok()) << option;
    EXPECT_EQ(compiled.error().code, Code::InvalidArgument) << option;
    EXPECT_NE(compiled.error().message.find(option), std::string::npos);
  }
}

TEST_F(Nvrtc, WhatTakesInTheTimeIsNotKept) {
  for (const char* macro : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
    // Not every NVRTC knows all three: that it is mentioned is enough.
    const std::string use =
        std::string("#ifdef ") + macro + "\n__device__ const char* when() { return " + macro + "; }\n#endif\n";
    EXPECT_NE(why_not_kept(Unit::cuda("k.cu", use + kClosed)), "") << macro;
    write("r/when.h", use);
    const Unit unit = Unit::cuda("k.cu", std::string("#include <when.h>\n") + kClosed).include_root(folder_.path("r"));
    EXPECT_NE(why_not_kept(unit).find(macro), std::string::npos);
    EXPECT_NE(why_not_kept(Unit::cuda("k.cu", kClosed).option(std::string("-DWHEN=") + macro)), "") << macro;
  }
  EXPECT_EQ(why_not_kept(Unit::cuda("k.cu", kClosed)), "");
}

TEST_F(Nvrtc, ClosuresNameWhatWasReadAndWhereNothingWas) {
  write("b/h.h", "#include \"inner/i.h\"\n");
  write("b/inner/i.h", "#pragma once\n");
  fs::create_directories(folder_.path("a"));
  const Unit unit = Unit::cuda("k.cu", std::string("#include \"h.h\"\n") + kClosed)
                        .include_root(folder_.path("a"))
                        .include_root(folder_.path("missing"))
                        .include_root(folder_.path("b"));
  const auto compiled = compile(unit);
  ASSERT_TRUE(compiled.ok()) << compiled.error().message << compiled.error().log;
  EXPECT_EQ(compiled->not_cacheable, "");
  const Closure& closure = *compiled->artifact.closure;
  const auto has = [&](std::uint16_t root, Closure::State state, const std::string& name) {
    return std::any_of(closure.items.begin(), closure.items.end(), [&](const Closure::Item& item) {
      return item.root == root && item.state == state && item.name == name;
    });
  };
  EXPECT_TRUE(has(2, Closure::State::Read, "h.h"));
  EXPECT_TRUE(has(2, Closure::State::Read, "inner/i.h"));
  EXPECT_TRUE(has(0, Closure::State::Absent, "h.h"));
  EXPECT_TRUE(has(1, Closure::State::Absent, "./"));
  EXPECT_TRUE(has(Closure::kWorkingDirectory, Closure::State::Absent, "h.h"));
  EXPECT_FALSE(closure.located);
  EXPECT_FALSE(check(closure, recipe(unit).places(), digests()));
}

TEST_F(Nvrtc, ALinkInTheSecondHeadersPlaceIsAnotherInput) {
  const std::string text = "#pragma once\n#ifdef A\n#define B\n#else\n#define A\n#endif\n";
  write("r/x.h", text);
  write("r/y.h", text);
  const Unit unit =
      Unit::cuda("k.cu", std::string("#include <x.h>\n#include <y.h>\n") + kClosed).include_root(folder_.path("r"));
  const auto apart = compile(unit);
  ASSERT_TRUE(apart.ok());
  ASSERT_EQ(apart->artifact.closure->twins.size(), 1U);
  fs::remove(folder_.path("r/y.h"));
  fs::create_symlink("x.h", folder_.path("r/y.h"));
  EXPECT_TRUE(check(*apart->artifact.closure, recipe(unit).places(), digests()));
  const auto one = compile(unit);
  ASSERT_TRUE(one.ok());
  EXPECT_FALSE(check(*one->artifact.closure, recipe(unit).places(), digests()));
  // The compiler looked at the link and read nothing: what it would lead to is an input all the same.
  fs::remove(folder_.path("r/y.h"));
  write("r/y.h", "#define C\n");
  EXPECT_TRUE(check(*one->artifact.closure, recipe(unit).places(), digests()));
}

TEST_F(Nvrtc, RootsThatLieOtherwiseInOneAnotherAreAnotherInput) {
  write("out/in/h.h", "#define H 1\n");
  write("else/h.h", "#define H 1\n");
  const Unit base = Unit::cuda("k.cu", std::string("#include <in/h.h>\n") + kClosed);
  const Unit nested = base.include_root(folder_.path("out")).include_root(folder_.path("out/in"));
  const auto compiled = compile(nested);
  ASSERT_TRUE(compiled.ok());
  EXPECT_FALSE(check(*compiled->artifact.closure, recipe(nested).places(), digests()));
  // Here `in/h.h` is nowhere, though the second root has the same `h.h`.
  fs::create_directories(folder_.path("empty"));
  const Unit apart = base.include_root(folder_.path("empty")).include_root(folder_.path("else"));
  EXPECT_TRUE(check(*compiled->artifact.closure, recipe(apart).places(), digests()));
}

TEST_F(Nvrtc, OfASealedRootOnlyTheSealCounts) {
  write("image/h.h", "#define H 1\n");
  write("image/VERSION", "1");
  const Unit unit =
      Unit::cuda("k.cu", std::string("#include <h.h>\n") + kClosed).include_root(folder_.path("image"), "VERSION");
  const auto compiled = compile(unit);
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->not_cacheable, "");
  write("image/h.h", "#define H 2\n");
  EXPECT_FALSE(check(*compiled->artifact.closure, recipe(unit).places(), digests()));
  write("image/VERSION", "2");
  EXPECT_TRUE(check(*compiled->artifact.closure, recipe(unit).places(), digests()));
}

TEST_F(Nvrtc, EveryArchitectureAndFormCompiles) {
  const auto library = NvrtcLibrary::open(toolkit_nvrtc()).value();
  int count = 0;
  library->supported_arch_count(&count);
  std::vector<int> numbers(static_cast<std::size_t>(count));
  library->supported_archs(numbers.data());
  ASSERT_GT(count, 5);
  const Unit unit = Unit::cuda("k.cu", "template <int N> __global__ void t(int* p) { *p = N; }").entry("t<1 + 2>");
  for (const int number : numbers) {
    for (const char* form : {"sm_", "compute_", "lto_"}) {
      const auto compiled = compiler_->compile(recipe(unit, Target::parse(form + std::to_string(number)).value()));
      ASSERT_TRUE(compiled.ok()) << form << number << compiled.error().message << compiled.error().log;
      EXPECT_EQ(*compiled->artifact.symbol("t<1 + 2>"), "_Z1tILi3EEvPi");
    }
  }
}

TEST_F(Nvrtc, WithoutAWorkerOnlyClosedUnitsMayBeKept) {
  WorkerPool::Options nowhere;
  nowhere.program = folder_.path("none");
  WorkerPool pool(nowhere);
  WorkerCompiler::Options none;
  none.pool = &pool;
  WorkerCompiler compiler(std::make_unique<NvrtcCompiler>(toolkit_nvrtc(), digests()), digests(), none,
                          events_.observer());
  const auto closed = compiler.compile(recipe(Unit::cuda("k.cu", kClosed)));
  ASSERT_TRUE(closed.ok());
  EXPECT_EQ(closed->not_cacheable, "");
  EXPECT_EQ(events_.count(Event::Kind::WorkerUnavailable), 0U);
  const auto open = compiler.compile(recipe(Unit::cuda("k.cu", std::string("// include\n") + kClosed)));
  ASSERT_TRUE(open.ok());
  EXPECT_NE(open->not_cacheable, "");
  EXPECT_EQ(events_.count(Event::Kind::WorkerUnavailable), 1U);
}

TEST_F(Nvrtc, ALibraryThatWasReplacedSinceItWasOpenedKeepsNothing) {
  Recipe other = recipe(Unit::cuda("k.cu", kClosed));
  other.compiler.digest.bytes[0] ^= 1;  // as if the files had been others when the recipe was made
  const auto compiled = compiler_->compile(other);
  ASSERT_TRUE(compiled.ok());
  EXPECT_NE(compiled->not_cacheable, "");
}

struct NvrtcFixture {
  static constexpr bool reproducible = true;
  static FileDigests& library_digests() {
    static FileDigests shared{std::string()};
    return shared;
  }
  std::unique_ptr<Compiler> compiler() { return std::make_unique<NvrtcCompiler>(toolkit_nvrtc(), library_digests()); }
  Unit unit() {
    return Unit::cuda("k.cu", std::string(kClosed) + "extern \"C\" __global__ void l() {}\n").entry("k").entry("l");
  }
  Unit broken() { return Unit::cuda("broken.cu", "// include\n__global__ void k() { this is no C++ }\n"); }
  Target target() { return Target::sm(80); }
  Target unsupported() { return Target::sm(35); }
  std::string possible() { return "sm_80"; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Nvrtc, CompilerConformance, NvrtcFixture);
INSTANTIATE_TYPED_TEST_SUITE_P(NvrtcInWorker, CompilerConformance, InWorker<NvrtcFixture>);

}  // namespace
}  // namespace kiln::test
