// SPDX-License-Identifier: Apache-2.0
// Options of NVRTC that trade code or language features for compile time: they are part of the key, and their results
// depend neither on the number of cores nor on the sandbox of a worker.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

#include "support/fixtures/worker_fixture.hpp"

namespace kiln::test {
namespace {

class NvrtcOptions : public WorkerFixture {
 protected:
  static Unit kernels(const std::vector<std::string>& options) {
    std::string source = "// include: a worker compiles it\n";
    for (const char* name : {"a", "b", "c", "d"}) {
      source += "extern \"C\" __global__ void ";
      source += name;
      source += "(float* p) { p[threadIdx.x] = sinf(p[threadIdx.x]) + '";
      source += name;
      source += "'; }\n";
    }
    return Unit::cuda("kernels.cu", source).with_options(options).with_entry("a").with_entry("d");
  }
  // Returns the number of bytes that differ.
  static std::size_t distance(const std::string& a, const std::string& b) {
    if (a.size() != b.size()) return std::max(a.size(), b.size());
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
    return count;
  }
  // Compiles three times, each time in a new worker.
  std::string compiled_thrice(const Unit& unit) {
    std::string first;
    for (int i = 0; i < 3; ++i) {
      open();
      const auto compiled = compile(unit);
      EXPECT_TRUE(compiled.has_value()) << compiled.error().message << compiled.error().log;
      EXPECT_EQ(compiled ? compiled->uncacheable_reason : "", "");
      if (i == 0) first = bytes(compiled);
      EXPECT_EQ(bytes(compiled), first);
    }
    return first;
  }
};

TEST_F(NvrtcOptions, SplitCompileIsReproducibleInTheSandboxAndPartOfTheKey) {
  const Unit split = kernels({"--split-compile=0"});
  const std::string made = compiled_thrice(split);
  EXPECT_EQ(made, reference(split));
  EXPECT_NE(recipe(split).request_key(), recipe(kernels({})).request_key());
  EXPECT_NE(recipe(split).request_key(), recipe(kernels({"--split-compile=2"})).request_key());
}

TEST_F(NvrtcOptions, CodeOfSplitCompileDoesNotDependOnThreadsAndCores) {
  open();
  const std::string all = reference(kernels({"--split-compile=0"}));
  // NVRTC 13 stores the options in machine code: the digit differs.
  EXPECT_LE(distance(reference(kernels({"--split-compile=1"})), reference(kernels({"--split-compile=2"}))), 1U);
  EXPECT_LE(distance(reference(kernels({"--split-compile=1"})), all), 1U);
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const std::string with_one = bytes(compile(kernels({"--split-compile=0"})));
  EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(with_one, all);
}

TEST_F(NvrtcOptions, MinimalIsReproducibleInTheSandboxAndPartOfTheKey) {
  const Unit minimal = kernels({"--minimal"});
  const std::string made = compiled_thrice(minimal);
  EXPECT_EQ(made, reference(minimal));
  EXPECT_NE(recipe(minimal).request_key(), recipe(kernels({})).request_key());
}

TEST_F(NvrtcOptions, UnknownOptionAndInvalidValueAreNamedInTheError) {
  open();
  const auto unknown = compile(kernels({"--split-compiles=2"}));
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("unrecognized option --split-compiles=2"), std::string::npos)
      << unknown.error().message;
  const auto invalid = compile(kernels({"--split-compile=-1"}));
  ASSERT_FALSE(invalid.has_value());
  EXPECT_NE(invalid.error().message.find("-split-compile must be non-negative"), std::string::npos)
      << invalid.error().message;
}

TEST_F(NvrtcOptions, OptionThatWritesHeadersIsRejected) {
  open();
  const auto rejected = compile(kernels({"--use-bundled-headers=" + directory_.path("headers")}));
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::InvalidArgument);
  EXPECT_NE(rejected.error().message.find("it writes files"), std::string::npos) << rejected.error().message;
}

}  // namespace
}  // namespace kiln::test
