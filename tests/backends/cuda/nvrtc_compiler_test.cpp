// SPDX-License-Identifier: Apache-2.0
// NvrtcCompiler and WorkerCompiler with the real library: what they reject, what is cacheable, and their dependency
// sets.
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "backends/cuda/nvrtc_compiler.hpp"
#include "backends/cuda/nvrtc_program.hpp"
#include "conformance/compiler_conformance.hpp"
#include "conformance/in_worker.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"
#include "worker/worker_compiler.hpp"

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
    compiler_ = std::make_unique<WorkerCompiler>(std::move(inner), digests(), options, events_.emitter());
  }
  // One instance for all tests, because digesting libnvrtc is slow.
  static FileDigestCache& digests() {
    static FileDigestCache digests{std::string()};
    return digests;
  }
  // Writes a file that is old enough for its content to be trusted.
  void write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(directory_.path(name)).parent_path());
    write_text(directory_.path(name), text);
  }
  Recipe recipe(const Unit& unit, const Target& target = Target::sm(80)) {
    Recipe recipe = recipe_for(*compiler_, unit, target);
    recipe.working_directory = directory_.path();
    return recipe;
  }
  Result<CompileResult> compile(const Unit& unit, const Target& target = Target::sm(80)) {
    std::this_thread::sleep_for(30ms);
    return compiler_->compile(recipe(unit, target), {});
  }
  std::string uncacheable_reason(const Unit& unit) {
    const auto compiled = compile(unit);
    EXPECT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
    return compiled ? compiled->uncacheable_reason : "";
  }

  TemporaryDirectory directory_;
  EventLog events_;
  WorkerPool pool_{{}};
  std::unique_ptr<WorkerCompiler> compiler_;
};

TEST_F(Nvrtc, RejectsOptionsThatNameFilesOrRepeatTheTarget) {
  for (const char* option :
       {"-arch=sm_90", "--gpu-architecture=sm_90", "-pch", "--pch-dir=x", "--create-pch=x", "--use-pch=x", "-time=x",
        "--fdevice-time-trace=x", "--ptxas-options=--options-file=x", "-Xptxas=-optf"}) {
    const auto compiled = compile(Unit::cuda("k.cu", kClosed).with_option(option));
    ASSERT_FALSE(compiled.has_value()) << option;
    EXPECT_EQ(compiled.error().code, Code::InvalidArgument) << option;
    EXPECT_NE(compiled.error().message.find(option), std::string::npos);
  }
}

// NVRTC 12 spells them by their mangled names if they are in a precompiled header.
TEST(PchReport, LogNamesEnumeratorsAsPlainCompileDoes) {
  const PchRequest order{PchRequest::Mode::Use, "/p", 1, 1};
  std::string log =
      "/p: using precompiled header file\n"
      "a.h(1): warning: x [with K=cub::V2::_ZN3cub2V21kE, L=a::_ZN1a3BoxIiE1cE] and a::_ZNotMangled and '_ZN1a1bE'\n";
  const PchResult report = take_pch_report(log, order);
  EXPECT_EQ(report.outcome, PchResult::Outcome::Used) << report.reason;
  EXPECT_EQ(log, "a.h(1): warning: x [with K=cub::V2::k, L=a::c] and a::_ZNotMangled and '_ZN1a1bE'\n");
}

TEST_F(Nvrtc, TimeMacrosAreNotCacheable) {
  for (const char* macro : {"__TIME__", "__DATE__", "__TIMESTAMP__"}) {
    // Not every NVRTC supports all three. A mention is enough.
    const std::string use =
        std::string("#ifdef ") + macro + "\n__device__ const char* when() { return " + macro + "; }\n#endif\n";
    EXPECT_NE(uncacheable_reason(Unit::cuda("k.cu", use + kClosed)), "") << macro;
    write("r/when.h", use);
    const Unit unit =
        Unit::cuda("k.cu", std::string("#include <when.h>\n") + kClosed).with_include_root(directory_.path("r"));
    EXPECT_NE(uncacheable_reason(unit).find(macro), std::string::npos);
    EXPECT_NE(uncacheable_reason(Unit::cuda("k.cu", kClosed).with_option(std::string("-DWHEN=") + macro)), "") << macro;
  }
  EXPECT_EQ(uncacheable_reason(Unit::cuda("k.cu", kClosed)), "");
}

TEST_F(Nvrtc, DependencySetHasReadAndMissingFiles) {
  write("b/h.h", "#include \"inner/i.h\"\n");
  write("b/inner/i.h", "#pragma once\n");
  fs::create_directories(directory_.path("a"));
  const Unit unit = Unit::cuda("k.cu", std::string("#include \"h.h\"\n") + kClosed)
                        .with_include_root(directory_.path("a"))
                        .with_include_root(directory_.path("missing"))
                        .with_include_root(directory_.path("b"));
  const auto compiled = compile(unit);
  ASSERT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
  EXPECT_EQ(compiled->uncacheable_reason, "");
  const DependencySet& dependency_set = *compiled->artifact.dependency_set;
  const auto has = [&](std::uint16_t root, DependencySet::State state, const std::string& name) {
    return std::any_of(dependency_set.items.begin(), dependency_set.items.end(),
                       [&](const DependencySet::Dependency& item) {
                         return item.root == root && item.state == state && item.name == name;
                       });
  };
  EXPECT_TRUE(has(2, DependencySet::State::Read, "h.h"));
  EXPECT_TRUE(has(2, DependencySet::State::Read, "inner/i.h"));
  EXPECT_TRUE(has(0, DependencySet::State::Absent, "h.h"));
  EXPECT_TRUE(has(1, DependencySet::State::Absent, "./"));
  EXPECT_TRUE(has(DependencySet::kWorkingDirectory, DependencySet::State::Absent, "h.h"));
  EXPECT_FALSE(dependency_set.embeds_paths);
  EXPECT_FALSE(check(dependency_set, recipe(unit).path_roots(), digests()));
}

TEST_F(Nvrtc, LinkInPlaceOfSecondHeaderIsDetected) {
  const std::string text = "#pragma once\n#ifdef A\n#define B\n#else\n#define A\n#endif\n";
  write("r/x.h", text);
  write("r/y.h", text);
  const Unit unit = Unit::cuda("k.cu", std::string("#include <x.h>\n#include <y.h>\n") + kClosed)
                        .with_include_root(directory_.path("r"));
  const auto apart = compile(unit);
  ASSERT_TRUE(apart.has_value());
  ASSERT_EQ(apart->artifact.dependency_set->duplicate_files.size(), 1U);
  fs::remove(directory_.path("r/y.h"));
  fs::create_symlink("x.h", directory_.path("r/y.h"));
  EXPECT_TRUE(check(*apart->artifact.dependency_set, recipe(unit).path_roots(), digests()));
  const auto one = compile(unit);
  ASSERT_TRUE(one.has_value());
  EXPECT_FALSE(check(*one->artifact.dependency_set, recipe(unit).path_roots(), digests()));
  // The compiler checked the link and read nothing. The target of the link is an input nevertheless.
  fs::remove(directory_.path("r/y.h"));
  write("r/y.h", "#define C\n");
  EXPECT_TRUE(check(*one->artifact.dependency_set, recipe(unit).path_roots(), digests()));
}

TEST_F(Nvrtc, DifferentNestingOfRootsIsDetected) {
  write("out/in/h.h", "#define H 1\n");
  write("else/h.h", "#define H 1\n");
  const Unit base = Unit::cuda("k.cu", std::string("#include <in/h.h>\n") + kClosed);
  const Unit nested = base.with_include_root(directory_.path("out")).with_include_root(directory_.path("out/in"));
  const auto compiled = compile(nested);
  ASSERT_TRUE(compiled.has_value());
  EXPECT_FALSE(check(*compiled->artifact.dependency_set, recipe(nested).path_roots(), digests()));
  // Here `in/h.h` is missing, although the second root has the same `h.h`.
  fs::create_directories(directory_.path("empty"));
  const Unit apart = base.with_include_root(directory_.path("empty")).with_include_root(directory_.path("else"));
  EXPECT_TRUE(check(*compiled->artifact.dependency_set, recipe(apart).path_roots(), digests()));
}

TEST_F(Nvrtc, OnlySentinelOfRootIsChecked) {
  write("image/h.h", "#define H 1\n");
  write("image/VERSION", "1");
  const Unit unit = Unit::cuda("k.cu", std::string("#include <h.h>\n") + kClosed)
                        .with_include_root(directory_.path("image"), "VERSION");
  const auto compiled = compile(unit);
  ASSERT_TRUE(compiled.has_value());
  EXPECT_EQ(compiled->uncacheable_reason, "");
  write("image/h.h", "#define H 2\n");
  EXPECT_FALSE(check(*compiled->artifact.dependency_set, recipe(unit).path_roots(), digests()));
  write("image/VERSION", "2");
  EXPECT_TRUE(check(*compiled->artifact.dependency_set, recipe(unit).path_roots(), digests()));
}

TEST_F(Nvrtc, EveryArchitectureAndFormCompiles) {
  const auto library = NvrtcLibrary::open(toolkit_nvrtc()).value();
  int count = 0;
  library->supported_arch_count(&count);
  std::vector<int> numbers(static_cast<std::size_t>(count));
  library->supported_archs(numbers.data());
  ASSERT_GT(count, 5);
  const Unit unit = Unit::cuda("k.cu", "template <int N> __global__ void t(int* p) { *p = N; }").with_entry("t<1 + 2>");
  for (const int number : numbers) {
    for (const char* form : {"sm_", "compute_", "lto_"}) {
      const auto compiled = compiler_->compile(recipe(unit, Target::parse(form + std::to_string(number)).value()), {});
      ASSERT_TRUE(compiled.has_value()) << form << number << compiled.error().message << compiled.error().log;
      EXPECT_EQ(*compiled->artifact.symbol("t<1 + 2>"), "_Z1tILi3EEvPi");
    }
  }
}

TEST_F(Nvrtc, WithoutWorkerOnlySelfContainedUnitsAreCacheable) {
  WorkerPool::Options nowhere;
  nowhere.program = directory_.path("none");
  WorkerPool pool(nowhere);
  WorkerCompiler::Options none;
  none.pool = &pool;
  WorkerCompiler compiler(std::make_unique<NvrtcCompiler>(toolkit_nvrtc(), digests()), digests(), none,
                          events_.emitter());
  const auto closed = compiler.compile(recipe(Unit::cuda("k.cu", kClosed)), {});
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(closed->uncacheable_reason, "");
  EXPECT_EQ(events_.count(Event::Kind::WorkerUnavailable), 1U);
  const auto open = compiler.compile(recipe(Unit::cuda("k.cu", std::string("// include\n") + kClosed)), {});
  ASSERT_TRUE(open.has_value());
  EXPECT_NE(open->uncacheable_reason, "");
  EXPECT_EQ(events_.count(Event::Kind::WorkerUnavailable), 2U);
}

// The messages of events, of `kiln status` and of reports have no log.
TEST_F(Nvrtc, MessageOfFailedCompileHasFirstError) {
  NvrtcCompiler compiler(toolkit_nvrtc(), digests());
  const auto message = [&](const char* source) {
    return compiler.compile(recipe(Unit::cuda("k.cu", source)), {}).error().message;
  };
  EXPECT_EQ(message("__global__ void k(int* p) {\n  *p = y;\n  *p = z;\n}\n"),
            "NVRTC failed to compile unit 'k.cu': k.cu(2): error: identifier \"y\" is undefined");
  const std::string missing = message("#include \"no.h\"\n__global__ void k() {}\n");
  EXPECT_NE(missing.find("open source file \"no.h\""), std::string::npos) << missing;
  EXPECT_TRUE(missing.ends_with("; add the include directory that has it")) << missing;
}

TEST_F(Nvrtc, ReplacedLibraryIsNotCacheable) {
  Recipe other = recipe(Unit::cuda("k.cu", kClosed));
  other.compiler.digest.bytes[0] ^= 1;  // as if the files had been different when the recipe was created
  const auto compiled = compiler_->compile(other, {});
  ASSERT_TRUE(compiled.has_value());
  EXPECT_NE(compiled->uncacheable_reason, "");
}

struct NvrtcFixture {
  static constexpr bool reproducible = true;
  static FileDigestCache& library_digests() {
    static FileDigestCache shared{std::string()};
    return shared;
  }
  std::unique_ptr<Compiler> compiler() { return std::make_unique<NvrtcCompiler>(toolkit_nvrtc(), library_digests()); }
  Unit unit() {
    return Unit::cuda("k.cu", std::string(kClosed) + "extern \"C\" __global__ void l() {}\n")
        .with_entry("k")
        .with_entry("l");
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
