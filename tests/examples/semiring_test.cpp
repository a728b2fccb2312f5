// SPDX-License-Identifier: Apache-2.0
#include "semiring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>

#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

using semiring::Backend;

std::size_t named(const std::string& prefix) {
  return static_cast<std::size_t>(
      std::count_if(semiring::members().begin(), semiring::members().end(),
                    [&](const semiring::Member& member) { return member.name.starts_with(prefix); }));
}

Session session_in(const TemporaryDirectory& directory) {
  SessionOptions options;
  options.settings["cache.dir"] = directory.path("cache");
  options.locked = {"cache.dir"};
  return Session::open(options).value();
}

TEST(Semiring, Has31KernelsAndFiveTypicalOnes) {
  EXPECT_EQ(named("gemm_"), 12U);
  EXPECT_EQ(named("gemm_max_times_i64"), 1U);
  EXPECT_EQ(named("argmax_"), 12U);
  EXPECT_EQ(named("backward_"), 4U);
  EXPECT_EQ(named("batched_"), 3U);
  for (const Backend backend : {Backend::OpenCl, Backend::Cuda}) {
    std::set<std::string> keys;
    for (const Unit& unit : semiring::everything(backend).units()) keys.insert(unit.key().digest.hex());
    EXPECT_EQ(keys.size(), 31U);
    const Units typical = semiring::typical(backend).units();
    EXPECT_EQ(typical.size(), 5U);
    for (const Unit& unit : typical) EXPECT_EQ(keys.count(unit.key().digest.hex()), 1U) << unit.entries().front();
  }
}

TEST(Semiring, KernelsShareOnePreambleAndDifferInOneLine) {
  const Units units = semiring::everything(Backend::Cuda).units();
  for (const Unit& unit : units) {
    EXPECT_EQ(&unit.preamble(), &units.front().preamble());
    EXPECT_EQ(std::count(unit.source().begin(), unit.source().end(), '\n'), 1) << unit.source();
  }
}

class SemiringForCuda : public testing::TestWithParam<int> {};

TEST_P(SemiringForCuda, EveryKernelCompiles) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  const TemporaryDirectory directory;
  Session session = session_in(directory);
  const auto start = std::chrono::steady_clock::now();
  for (const Unit& unit : semiring::everything(Backend::Cuda).units()) {
    const auto artifact = session.artifact(unit, Target::sm(GetParam()));
    ASSERT_TRUE(artifact.has_value()) << unit.entries().front() << ": " << artifact.error().message
                                      << artifact.error().log;
    EXPECT_NE(artifact->symbol(unit.entries().front()), nullptr);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("figure: 31 semiring kernels for sm_%d, sequentially: %.1f s\n", GetParam(), seconds.count());
}

INSTANTIATE_TEST_SUITE_P(Architectures, SemiringForCuda, testing::Values(80, 90),
                         [](const auto& number) { return "sm_" + std::to_string(number.param); });

}  // namespace
}  // namespace kiln::test
