// SPDX-License-Identifier: Apache-2.0
// CcclCompiler with the real libraries of several releases, in workers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/cccl_envelope.hpp"
#include "support/fixtures/cccl_packages.hpp"
#include "support/fixtures/cccl_tree.hpp"
#include "support/processes/pch_process.hpp"

namespace kiln::test {
namespace {

class CcclReleases : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (cccl_package().empty()) GTEST_SKIP() << "no cuda-cccl (tools/setup.sh)";
  }
  PchProcess process(const std::string& cccl, bool headers = true) {
    return PchProcess({.directory = directory_.path("cache"),
                       .working_directory = directory_.path(),
                       .cccl = cccl,
                       .headers = headers});
  }
  static CcclEnvelope envelope(const Result<CompileResult>& compiled) {
    return decode_cccl_envelope(compiled->artifact.bytes.view()).value();
  }

  TemporaryDirectory directory_;
};

TEST_F(CcclReleases, OlderReleasesCompileAndUsePrecompiledHeaders) {
  for (const char* release : {"1.2.0", "1.1.1"}) {
    SCOPED_TRACE(release);
    const std::string package = cccl_package(release);
    ASSERT_FALSE(package.empty()) << "tools/setup.sh installs it";
    PchProcess one = process(package);
    const Unit unit = cccl::find_predefined("reduce_sum_i32").value();
    one.expect_queued_similar(unit);
    const auto compiled = one.compile(unit);
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message << "\n" << compiled.error().log;
    EXPECT_EQ(compiled->uncacheable_reason, "");
    EXPECT_EQ(envelope(compiled).release, release);
    EXPECT_EQ(one.kept(), 1U);
    EXPECT_EQ(one.used(), 1U);
    EXPECT_EQ(one.dropped(), 0U) << one.dropped_reason();
  }
}

TEST_F(CcclReleases, SharedOperatorIsCompiledForLowestTargetAndLinkedIntoEach) {
  cccl::Spec spec = cccl::select<std::int32_t>("x > 7");
  for (cccl::Operator& op : spec.operators) op.shared = true;
  spec = spec.for_targets({Target::sm(90), Target::sm(80)});
  EXPECT_EQ(spec.shared_capability, 80);
  PchProcess one = process(cccl_package());
  one.expect_queued_similar(spec, Target::sm(80));
  for (const int capability : {80, 90}) {
    const auto compiled = one.compile(spec, Target::sm(capability));
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message << "\n" << compiled.error().log;
    EXPECT_EQ(envelope(compiled).capability, capability);
    EXPECT_FALSE(envelope(compiled).kernels.empty());
  }
}

TEST_F(CcclReleases, UnknownReleaseIsCheckedOncePerHostAndThenCompiles) {
  const std::string site = directory_.path("site");
  const CcclTree tree(cccl_package(), site, CcclTree::Headers::Linked);
  tree.change_build_id();
  const Unit unit = cccl::find_predefined("reduce_sum_i32").value();
  for (const std::size_t checks : {std::size_t{2}, std::size_t{0}}) {  // the second process finds the result
    PchProcess one = process(site, false);
    const auto compiled = one.compile(unit);
    ASSERT_TRUE(compiled.has_value()) << compiled.error().message << "\n" << compiled.error().log;
    EXPECT_EQ(compiled->uncacheable_reason, "");
    EXPECT_NE(envelope(compiled).build_id, choose_cccl(cccl_package()).value().build_id);
    const auto said = one.events.of(Event::Kind::LibraryChecked);
    ASSERT_EQ(said.size(), checks) << "the start and the result";
    if (checks == 0) continue;
    EXPECT_EQ(said.back().selected, "passed") << said.back().message;
  }
}

// The library of 1.1 compiles reduce with other parameters than that of 1.2, as its headers make kiln expect.
TEST_F(CcclReleases, UnknownReleaseWithOtherParametersFailsCheck) {
  const std::string older = cccl_package("1.1.1");
  ASSERT_FALSE(older.empty()) << "tools/setup.sh installs it";
  const std::string site = directory_.path("site");
  const CcclTree tree(older, site, CcclTree::Headers::Linked, cccl_package());
  tree.change_build_id();
  PchProcess one = process(site, false);
  for (int i = 0; i < 2; ++i) {
    const auto compiled = one.compile(cccl::find_predefined("reduce_sum_i32").value());
    ASSERT_FALSE(compiled.has_value());
    EXPECT_EQ(compiled.error().code, Code::Unavailable);
    for (const char* said : {"does not know", "check of reduce", "failed", "install"}) {
      EXPECT_NE(compiled.error().message.find(said), std::string::npos) << compiled.error().message;
    }
  }
  const auto said = one.events.of(Event::Kind::LibraryChecked);
  ASSERT_EQ(said.size(), 2U) << "one check, its start and its result";
  EXPECT_EQ(said.back().selected, "failed");
}

TEST_F(CcclReleases, RejectsReleasesThatCannotSerialize) {
  const std::string site = directory_.path("site");
  const CcclTree tree(cccl_package(), site, CcclTree::Headers::Linked);
  tree.change_build_id();
  std::filesystem::remove(site + "/cuda/cccl/headers");
  std::filesystem::create_directories(site + "/cuda/cccl/headers/include/cuda/std/__cccl");
  write_text(site + "/cuda/cccl/headers/include/cuda/std/__cccl/version.h", "#define CCCL_VERSION 3004000\n");
  CcclCompiler compiler(site, toolkit_nvrtc(), shared_digests());
  const auto identity = compiler.identity({});
  ASSERT_FALSE(identity.has_value());
  EXPECT_EQ(identity.error().code, Code::Unavailable);
  for (const char* said : {"unsupported release", "build id", "serialize", "install", "1.2.1"}) {
    EXPECT_NE(identity.error().message.find(said), std::string::npos) << identity.error().message;
  }
}

}  // namespace
}  // namespace kiln::test
