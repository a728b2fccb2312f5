// SPDX-License-Identifier: Apache-2.0
// Precompiled headers change the compile time of CCCL algorithms, but not their code. Blobs differ even without them,
// because internal symbols contain the process ID. So the test compares every section of machine code by name and
// bytes, and the kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "core/cccl_envelope.hpp"
#include "core/dependency_set.hpp"
#include "support/fixtures/cccl_packages.hpp"
#include "support/fixtures/cubin_sections.hpp"
#include "support/processes/pch_process.hpp"

namespace kiln::test {
namespace {

class CcclIdentity : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (cccl_package().empty()) GTEST_SKIP() << "no cuda-cccl (tools/setup.sh)";
  }
  std::unique_ptr<PchProcess> process(const char* name, bool headers) {
    std::filesystem::create_directories(directory_.path(name));
    return std::make_unique<PchProcess>(PchProcess::Options{.directory = directory_.path(name),
                                                            .working_directory = directory_.path(),
                                                            .cccl = cccl_package(),
                                                            .headers = headers});
  }

  void check(const cccl::Spec& spec, const Target& target) {
    SCOPED_TRACE(spec.name + " for " + target.name());
    const Unit unit = spec;
    makers_->expect_queued_similar(unit, target);
    // Concurrently: each has its own worker.
    Result<CompileResult> plain = failure_to_start();
    std::thread other([&] { plain = plain_->compile(unit, target); });
    const Result<CompileResult> with = makers_->compile(unit, target);
    other.join();
    ASSERT_TRUE(plain.has_value()) << plain.error().message << "\n" << plain.error().log;
    ASSERT_TRUE(with.has_value()) << with.error().message << "\n" << with.error().log;
    const CcclEnvelope one = decode_cccl_envelope(plain->artifact.bytes.view()).value();
    const CcclEnvelope two = decode_cccl_envelope(with->artifact.bytes.view()).value();
    EXPECT_EQ(one.kernels, two.kernels);
    const auto code = text_sections(cubin_within(one.blob));
    EXPECT_FALSE(code.empty());
    EXPECT_TRUE(code == text_sections(cubin_within(two.blob))) << "different code";
    // The precompiled header contains more headers than one algorithm needs, and all that it needs.
    const auto needed = read_by(*plain);
    const auto read = read_by(*with);
    EXPECT_TRUE(std::includes(read.begin(), read.end(), needed.begin(), needed.end())) << "a header was not recorded";
    ++compared_;
    sections_ += code.size();
    plain_bytes_ += one.blob.size();
    bytes_ += two.blob.size();
  }
  // Returns the files that determined the output, by root, name and content.
  static std::set<std::string> read_by(const CompileResult& compiled) {
    std::set<std::string> read;
    for (const DependencySet::Dependency& item : compiled.artifact.dependency_set->items) {
      if (item.state != DependencySet::State::Read) continue;
      read.insert(std::to_string(item.root) + " " + item.name + " " + item.digest.hex());
    }
    return read;
  }
  static Error failure_to_start() { return Error{Code::Internal, "it did not start", {}}; }

  TemporaryDirectory directory_;
  std::unique_ptr<PchProcess> plain_ = process("plain", false);
  std::unique_ptr<PchProcess> makers_ = process("makers", true);
  std::size_t compared_ = 0;
  std::size_t sections_ = 0;
  std::size_t plain_bytes_ = 0;
  std::size_t bytes_ = 0;
};

TEST_F(CcclIdentity, EveryAlgorithmHasEqualCodeWithAndWithoutPch) {
  const bool everything = std::getenv("KILN_TEST_ALL") != nullptr;
  const auto start = std::chrono::steady_clock::now();
  for (const int capability : {80, 90, 100, 120}) {
    for (const cccl::Spec& spec : cccl::predefined_specs()) {
      // Two in CI, one of them a scan for which the library uses special compile options.
      const bool stands_for_others = spec.name == (capability == 80 ? "reduce_sum_i32" : "exclusive_scan_i32");
      if (!everything && (capability > 100 || capability == 90 || !stands_for_others)) continue;
      check(spec, Target::sm(capability));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(makers_->used(), compared_) << "the comparison did not use precompiled headers";
  EXPECT_EQ(makers_->dropped(), 0U) << makers_->dropped_reason();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "figure: CCCL identity: %zu specs × targets, %zu sections of code, kept=%zu used=%zu dropped=%zu "
      "differences=%s kilobytes of blobs=%zu without and %zu with precompiled headers seconds=%.0f\n",
      compared_, sections_, makers_->kept(), makers_->used(), makers_->dropped(), HasFailure() ? "some" : "0",
      plain_bytes_ >> 10, bytes_ >> 10, seconds);
}

}  // namespace
}  // namespace kiln::test
