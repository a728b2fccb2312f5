// SPDX-License-Identifier: Apache-2.0
// NvJitLinkCompiler with the real library: what it links, what it rejects, and what is cacheable.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "backends/cuda/cubin.hpp"
#include "backends/cuda/nvjitlink_parts.hpp"
#include "conformance/compiler_conformance.hpp"
#include "conformance/in_worker.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

class NvJitLink : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    linker_ = toolkit_linker();
  }
  Result<CompileResult> link(const Unit& unit, const Target& target = Target::sm(80)) {
    return linker_->compile(recipe_for(*linker_, unit, target), {});
  }
  static Bytes part(const std::string& source, const char* target) {
    return compiled_bytes(Unit::cuda("part.cu", source).with_option("-rdc=true"), Target::parse(target).value());
  }
  static Unit sample() {
    return Unit::link("whole", {LinkPart::ltoir("caller", ltoir_of("a.cu", kCaller)),
                                LinkPart::ltoir("callee", ltoir_of("b.cu", kCallee))})
        .with_entry("k");
  }
  std::unique_ptr<NvJitLinkCompiler> linker_;
};

TEST_F(NvJitLink, PartsOfEveryFormLinkWithEachOther) {
  const LinkPart callers[] = {LinkPart::ltoir("a", ltoir_of("a.cu", kCaller)),
                              LinkPart::ptx("a", part(kCaller, "compute_80")),
                              LinkPart::cubin("a", part(kCaller, "sm_80"))};
  const LinkPart callees[] = {LinkPart::ltoir("b", ltoir_of("b.cu", kCallee)),
                              LinkPart::ptx("b", part(kCallee, "compute_80")),
                              LinkPart::cubin("b", part(kCallee, "sm_80"))};
  for (const LinkPart& caller : callers) {
    for (const LinkPart& callee : callees) {
      const auto linked = link(Unit::link("whole", {caller, callee}).with_entry("k").with_entry("l"));
      ASSERT_TRUE(linked.has_value()) << linked.error().message << linked.error().log;
      EXPECT_EQ(linked->uncacheable_reason, "");
      EXPECT_EQ(read_cubin(linked->artifact.bytes.view()).value().kernels.size(), 2U);
    }
  }
}

TEST_F(NvJitLink, LtoIrLinksToPtxToo) {
  const auto linked = link(sample(), Target::parse("compute_80").value());
  ASSERT_TRUE(linked.has_value()) << linked.error().message << linked.error().log;
  EXPECT_NE(linked->artifact.bytes.view().find(".entry k("), std::string_view::npos);
  EXPECT_EQ(*linked->artifact.symbol("k"), "k");
  const auto missing = link(sample().with_entry("m"), Target::parse("compute_80").value());
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Code::CompileFailed);
}

TEST_F(NvJitLink, PtxWithoutNulIsLinkedCorrectly) {
  const Bytes caller = part(kCaller, "compute_80");
  std::string text(caller.view());
  while (text.ends_with('\0')) text.pop_back();
  // In the encoded parts, the callee's bytes follow directly.
  const auto linked =
      link(Unit::link("whole", {LinkPart::ptx("a", Bytes::of(text)), LinkPart::cubin("b", part(kCallee, "sm_80"))}));
  EXPECT_TRUE(linked.has_value()) << linked.error().message << linked.error().log;
}

TEST_F(NvJitLink, LinksForEveryArchitectureOfNvrtc) {
  const auto nvrtc = NvrtcLibrary::open(toolkit_nvrtc()).value();
  int count = 0;
  nvrtc->supported_arch_count(&count);
  std::vector<int> numbers(static_cast<std::size_t>(count));
  nvrtc->supported_archs(numbers.data());
  ASSERT_GT(count, 5);
  for (const int number : numbers) {
    const Target lto = Target::parse("lto_" + std::to_string(number)).value();
    const Unit unit = Unit::link("whole", {LinkPart::ltoir("a", compiled_bytes(Unit::cuda("a.cu", kCaller), lto)),
                                           LinkPart::ltoir("b", compiled_bytes(Unit::cuda("b.cu", kCallee), lto))});
    const auto linked = link(unit.with_entry("k"), Target::sm(number));
    ASSERT_TRUE(linked.has_value()) << number << linked.error().message << linked.error().log;
  }
}

TEST_F(NvJitLink, RejectsOptionsThatNameFilesOrRepeatTheTarget) {
  for (const char* option : {"-arch=sm_90", "-ptx", "-lto", "-Xptxas=--options-file=x", "-Xptxas=-optf"}) {
    const auto linked = link(sample().with_option(option));
    ASSERT_FALSE(linked.has_value()) << option;
    EXPECT_EQ(linked.error().code, Code::InvalidArgument) << option;
    EXPECT_NE(linked.error().message.find(option), std::string::npos);
  }
}

TEST_F(NvJitLink, PassesOptionsToTheLinker) {
  const auto plain = link(sample());
  const auto slow = link(sample().with_option("-O0"));
  ASSERT_TRUE(plain.has_value() && slow.has_value());
  EXPECT_NE(plain->artifact.bytes, slow->artifact.bytes);
  const auto rejected = link(sample().with_option("-no-such-option"));
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::CompileFailed);
  EXPECT_NE(rejected.error().log.find("-no-such-option"), std::string::npos) << rejected.error().log;
}

TEST_F(NvJitLink, RejectsPartsOfWrongForm) {
  const Bytes junk = Bytes::of(std::string(400, 'x'));
  for (const LinkPart& odd : {LinkPart::ltoir("odd", junk), LinkPart::ptx("odd", junk), LinkPart::cubin("odd", junk),
                              LinkPart::cubin("odd", {}), LinkPart::cubin("odd", part(kCallee, "sm_90"))}) {
    const auto linked = link(Unit::link("whole", {LinkPart::ltoir("good", ltoir_of("b.cu", kCallee)), odd}));
    ASSERT_FALSE(linked.has_value());
    EXPECT_EQ(linked.error().code, Code::CompileFailed);
    EXPECT_NE(linked.error().message.find("'odd'"), std::string::npos) << linked.error().message;
  }
}

TEST_F(NvJitLink, RejectsUnitsAsParts) {
  const auto linked = link(Unit::link("whole", {LinkPart::unit(Unit::cuda("part.cu", kCallee))}));
  ASSERT_FALSE(linked.has_value());
  EXPECT_EQ(linked.error().code, Code::InvalidArgument);
  EXPECT_NE(linked.error().message.find("part.cu"), std::string::npos);
}

TEST_F(NvJitLink, MissingEntryErrorListsKernels) {
  const auto linked = link(sample().with_entry("nothing"));
  ASSERT_FALSE(linked.has_value());
  EXPECT_NE(linked.error().message.find("'nothing'; it has: "), std::string::npos) << linked.error().message;
  EXPECT_NE(linked.error().message.find("l"), std::string::npos);
}

TEST_F(NvJitLink, OnlyLinksOfBytesAreSelfContained) {
  const auto closed = [&](const Unit& unit) {
    return linker_->is_self_contained(recipe_for(*linker_, unit, Target::sm(80)));
  };
  EXPECT_TRUE(closed(sample()));
  EXPECT_FALSE(closed(sample().with_option("-Xptxas=--options-file=x")));
  EXPECT_FALSE(closed(Unit::link("whole", {LinkPart::unit(Unit::cuda("part.cu", kCallee))})));
  EXPECT_FALSE(closed(Unit::of_kind("link", "whole", "no parts")));
}

TEST_F(NvJitLink, AccessesNoFilesAfterOpening) {
  if (access("/usr/bin/strace", X_OK) != 0) GTEST_SKIP() << "no strace";
  const TemporaryDirectory directory;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command = "ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o " + directory.path("trace") +
                              " -e trace=file,process " + self +
                              " --gtest_filter=NvJitLink.PartsOfEveryFormLinkWithEachOther > /dev/null";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::ifstream trace(directory.path("trace"));
  std::string asked;
  bool open = false;
  for (std::string line; std::getline(trace, line);) {
    const bool is_library = line.find("libnvJitLink.so") != std::string::npos;
    if (is_library && line.find("openat") != std::string::npos) open = true;
    const bool by_kiln = line.find("getcwd") != std::string::npos || line.find("exit") != std::string::npos ||
                         line.find("AT_EMPTY_PATH") != std::string::npos;  // of open files
    if (open && !is_library && !by_kiln) asked += line + "\n";
  }
  EXPECT_TRUE(open);
  EXPECT_EQ(asked, "");
}

TEST_F(NvJitLink, CubinWithLineInformationIsNotCacheable) {
  const Unit lined =
      Unit::cuda("b.cu", "extern \"C\" __global__ void k(float* p) { *p = 1; }").with_option("-lineinfo");
  const Unit unit = Unit::link("whole", {LinkPart::ltoir("b", compiled_bytes(lined, Target::parse("lto_80").value()))})
                        .with_entry("k");
  const auto cubin = link(unit);
  ASSERT_TRUE(cubin.has_value()) << cubin.error().message;
  EXPECT_NE(cubin->uncacheable_reason, "");
  const auto ptx = link(unit, Target::parse("compute_80").value());
  ASSERT_TRUE(ptx.has_value()) << ptx.error().message;
  EXPECT_EQ(ptx->uncacheable_reason, "");
}

TEST_F(NvJitLink, MismatchingLibraryOrEnvironmentIsNotCacheable) {
  Recipe other = recipe_for(*linker_, sample(), Target::sm(80));
  other.compiler.digest.bytes[0] ^= 1;
  const auto replaced = linker_->compile(other, {});
  ASSERT_TRUE(replaced.has_value());
  EXPECT_NE(replaced->uncacheable_reason, "");
  other = recipe_for(*linker_, sample(), Target::sm(80));
  other.compiler.environment.emplace_back("NVVM_IR_VER_CHK", "0");
  const auto elsewhere = linker_->compile(other, {});
  ASSERT_TRUE(elsewhere.has_value());
  EXPECT_NE(elsewhere->uncacheable_reason, "");
}

TEST_F(NvJitLink, RejectsLtoIrAndUnknownArchitectures) {
  for (const Target& target :
       {Target::parse("lto_80").value(), Target{"sm_8", Form::Cubin}, Target{"nonsense", Form::Ptx}, Target::sm(35),
        Target::sm(999), Target::opencl("pocl")}) {
    const Status supported = linker_->supports(target);
    ASSERT_FALSE(supported.has_value()) << target.name();
    EXPECT_EQ(supported.error().code, Code::Unsupported);
  }
  EXPECT_TRUE(linker_->supports(Target::parse("sm_90a").value()).has_value());
}

TEST_F(NvJitLink, ConfiguredButMissingLibraryIsUnavailable) {
  NvJitLinkCompiler none("/nowhere/libnvJitLink.so.13", toolkit_nvrtc(), library_digests());
  const auto identity = none.identity({});
  ASSERT_FALSE(identity.has_value());
  EXPECT_EQ(identity.error().code, Code::Unavailable);
  EXPECT_NE(identity.error().message.find("/nowhere/libnvJitLink.so.13"), std::string::npos);
}

struct NvJitLinkFixture {
  static constexpr bool reproducible = true;
  std::unique_ptr<Compiler> compiler() { return toolkit_linker(); }
  Unit unit() {
    return Unit::link("whole", {LinkPart::ltoir("a", ltoir_of("a.cu", kCaller)),
                                LinkPart::ltoir("b", ltoir_of("b.cu", kCallee))})
        .with_entry("k")
        .with_entry("l");
  }
  // It calls a function that is not defined.
  Unit broken() { return Unit::link("broken", {LinkPart::ltoir("a", ltoir_of("a.cu", kCaller))}); }
  Target target() { return Target::sm(80); }
  Target unsupported() { return Target::sm(35); }
  std::string possible() { return "sm_80"; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(NvJitLink, CompilerConformance, NvJitLinkFixture);
INSTANTIATE_TYPED_TEST_SUITE_P(NvJitLinkInWorker, CompilerConformance, InWorker<NvJitLinkFixture>);

}  // namespace
}  // namespace kiln::test
