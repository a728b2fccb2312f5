// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "examples/examples.hpp"

namespace kiln::test {
namespace {

TEST_F(Examples, QuickstartPrintsResultAndSecondRunCompilesNothing) {
  const Ran first = run_program({KILN_QUICKSTART});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, "1024 results are right; kernels compiled: 1\n");
  const Ran second = run_program({KILN_QUICKSTART});
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out, "1024 results are right; kernels compiled: 0\n");
}

TEST_F(Examples, ManyKernelsCompilesFiveKernelsOnceForAllProcesses) {
  const nlohmann::json first = report({"--backend", "opencl"});
  EXPECT_EQ(first["compiled"], 5) << first;
  EXPECT_EQ(first["cached"], 0);
  EXPECT_EQ(first["checked"], 5);
  EXPECT_EQ(first["executed"], true);
  EXPECT_EQ(first["available"], 31);
  EXPECT_EQ(first["not_requested"], 26);
  EXPECT_EQ(run({"cache", "ls", "--json"}).json()["entries"].size(), 5U) << "the other 26 kernels are not compiled";

  std::vector<double> startup_ms;
  nlohmann::json later;
  for (int run = 0; run < 5; ++run) {
    later = report({"--backend", "opencl"});
    EXPECT_EQ(later["compiled"], 0) << later;
    EXPECT_EQ(later["cached"], 5);
    EXPECT_EQ(later["checked"], 5);
    startup_ms.push_back(later.value("startup_ms", 1e9));
  }
  std::sort(startup_ms.begin(), startup_ms.end());
  std::printf(
      "figure: many_kernels on PoCL: startup %.3f ms cold, %.3f ms warm (median of 5, limit 5); "
      "first result after %.0f ms cold, %.0f ms warm\n",
      first.value("startup_ms", 0.0), startup_ms[2], first.value("first_result_ms", 0.0),
      later.value("first_result_ms", 0.0));
#ifdef NDEBUG
  EXPECT_LE(startup_ms[0], 5) << "a busy machine delays some of five starts, not all";
#endif
}

TEST_F(Examples, ManyKernelsPrintsUsage) {
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {}, {"--backend"}, {"--backend", "metal"}, {"--backend", "opencl", "--trace"}, {"--json"}}) {
    const Ran ran = many_kernels(wrong);
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_TRUE(ran.says("--backend opencl|cuda")) << ran.err;
  }
}

TEST_F(Examples, ManyKernelsDeclaresItsKernelsAndUndeclaredUseIsReported) {
  const nlohmann::json five = report({"--backend", "opencl", "--record"});
  EXPECT_EQ(five["undeclared"].size(), 0U) << five;

  const Ran six = many_kernels({"--backend", "opencl", "--undeclared", "--record", "--json"});
  EXPECT_EQ(six.exit_code, 1) << six.out;
  const nlohmann::json json = six.json();
  ASSERT_TRUE(json.is_object() && json["undeclared"].size() == 1) << six.out << six.err;
  EXPECT_EQ(json["undeclared"][0]["entry"], "gemm_min_plus_f32");
  EXPECT_NE(std::string(json["undeclared"][0]["caller"]).find("check.cpp:"), std::string::npos) << json;
  EXPECT_EQ(json["checked"], 6);

  const Ran unrecorded = many_kernels({"--backend", "opencl", "--undeclared"});
  EXPECT_EQ(unrecorded.exit_code, 0) << "without recording it is not an error: " << unrecorded.err;
  EXPECT_NE(unrecorded.out.find("0 compiled, 6 cached, 0 failed; 25 of the library's 31 kernels not requested"),
            std::string::npos)
      << unrecorded.out;
  EXPECT_NE(unrecorded.out.find("gemm_min_plus_f32        right"), std::string::npos) << unrecorded.out;
}

}  // namespace
}  // namespace kiln::test
