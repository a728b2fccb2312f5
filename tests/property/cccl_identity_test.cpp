// Precompiled headers change how long CCCL's algorithms take to compile, and not their code. Blobs differ even without
// them (internal symbols carry the number of the process), so what is compared is every section of machine code, by its
// name and bytes, and the kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "core/cccl_envelope.hpp"
#include "core/closure.hpp"
#include "support/cccl_packages.hpp"
#include "support/cubin_sections.hpp"
#include "support/pch_process.hpp"

namespace kiln::test {
namespace {

class CcclIdentity : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    if (cccl_package().empty()) GTEST_SKIP() << "no cuda-cccl (tools/setup.sh)";
  }
  std::unique_ptr<PchProcess> process(const char* name, bool headers) {
    std::filesystem::create_directories(folder_.path(name));
    return std::make_unique<PchProcess>(PchProcess::Options{
        .folder = folder_.path(name), .working_directory = folder_.path(), .cccl = cccl_package(), .headers = headers});
  }

  void check(const cccl::Spec& spec, const Target& target) {
    SCOPED_TRACE(spec.name + " for " + target.name());
    const Unit unit = spec;
    makers_->expect_company(unit, target);
    // At the same time: each has a worker of its own.
    Result<Compiled> plain = failure_to_start();
    std::thread other([&] { plain = plain_->compile(unit, target); });
    const Result<Compiled> with = makers_->compile(unit, target);
    other.join();
    ASSERT_TRUE(plain.ok()) << plain.error().message << "\n" << plain.error().log;
    ASSERT_TRUE(with.ok()) << with.error().message << "\n" << with.error().log;
    const CcclEnvelope one = decode_cccl_envelope(plain->artifact.bytes.view()).value();
    const CcclEnvelope two = decode_cccl_envelope(with->artifact.bytes.view()).value();
    EXPECT_EQ(one.kernels, two.kernels);
    const auto code = text_sections(cubin_within(one.blob));
    EXPECT_FALSE(code.empty());
    EXPECT_TRUE(code == text_sections(cubin_within(two.blob))) << "other code";
    // What is precompiled has more headers than one algorithm needs. All that it needs is among them.
    const auto needed = read_by(*plain);
    const auto read = read_by(*with);
    EXPECT_TRUE(std::includes(read.begin(), read.end(), needed.begin(), needed.end())) << "a header is not seen";
    ++compared_;
    sections_ += code.size();
    plain_bytes_ += one.blob.size();
    bytes_ += two.blob.size();
  }
  // The files that decided what came out, by root, name and content.
  static std::set<std::string> read_by(const Compiled& compiled) {
    std::set<std::string> read;
    for (const Closure::Item& item : compiled.artifact.closure->items) {
      if (item.state != Closure::State::Read) continue;
      read.insert(std::to_string(item.root) + " " + item.name + " " + item.digest.hex());
    }
    return read;
  }
  static Error failure_to_start() { return Error{Code::Internal, "it did not start", {}}; }

  TemporaryDirectory folder_;
  std::unique_ptr<PchProcess> plain_ = process("plain", false);
  std::unique_ptr<PchProcess> makers_ = process("makers", true);
  std::size_t compared_ = 0;
  std::size_t sections_ = 0;
  std::size_t plain_bytes_ = 0;
  std::size_t bytes_ = 0;
};

TEST_F(CcclIdentity, EveryAlgorithmIsTheSameCodeWithAndWithoutPrecompiledHeaders) {
  const bool everything = std::getenv("KILN_TEST_ALL") != nullptr;
  const auto start = std::chrono::steady_clock::now();
  for (const int capability : {80, 90, 100, 120}) {
    for (const cccl::Spec& spec : cccl::founding()) {
      // In CI one of each of the two larger sets of headers.
      const bool stands_for_others = spec.name == "reduce_sum_i32" || spec.name == "lower_bound_i32";
      if (!everything && (capability != 80 || !stands_for_others)) continue;
      check(spec, Target::sm(capability));
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(makers_->used(), compared_) << "what was compared did not use precompiled headers";
  EXPECT_EQ(makers_->dropped(), 0U) << makers_->why_dropped();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf(
      "figure: CCCL identity: %zu specs × targets, %zu sections of code, kept=%zu used=%zu dropped=%zu "
      "differences=%s kilobytes of blobs=%zu without and %zu with precompiled headers seconds=%.0f\n",
      compared_, sections_, makers_->kept(), makers_->used(), makers_->dropped(), HasFailure() ? "some" : "0",
      plain_bytes_ >> 10, bytes_ >> 10, seconds);
}

}  // namespace
}  // namespace kiln::test
