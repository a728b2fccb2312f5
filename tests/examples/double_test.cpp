// SPDX-License-Identifier: Apache-2.0
// many_kernels with CUDA: NVRTC really compiles the kernels, and a fake driver accepts them like the real one and
// computes nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "examples/examples.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

class ExamplesOnFakeDriver : public Examples, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    Examples::SetUp();
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  }
  nlohmann::json run_on(const std::string& devices, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"--backend", "cuda"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return report(arguments, {{"KILN_DRIVER", KILN_FAKE_DRIVER}, {"KILN_FAKE_DRIVER_DEVICES", devices}});
  }
};

TEST_P(ExamplesOnFakeDriver, ManyKernelsCompilesFiveAndSecondProcessNone) {
  const nlohmann::json first = run_on(GetParam());
  EXPECT_EQ(first["compiled"], 5) << first;
  EXPECT_EQ(first["cached"], 0);
  EXPECT_EQ(first["device"], GetParam());
  EXPECT_EQ(first["executed"], false) << "the fake driver computes nothing, and the report must state it";
  EXPECT_EQ(first["checked"], 0);

  const nlohmann::json second = run_on(GetParam());
  EXPECT_EQ(second["compiled"], 0) << second;
  EXPECT_EQ(second["cached"], 5);
  std::printf("figure: many_kernels with the fake driver, %s: compiled %d then %d, startup %.3f ms then %.3f ms\n",
              GetParam().c_str(), first.value("compiled", -1), second.value("compiled", -1),
              first.value("startup_ms", 0.0), second.value("startup_ms", 0.0));
}

TEST_P(ExamplesOnFakeDriver, ManyKernelsLaunchesAll31Kernels) {
  const nlohmann::json all = run_on(GetParam(), {"--all"});
  EXPECT_EQ(all["compiled"], 31) << all;
  EXPECT_EQ(all["failed"], 0);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ExamplesOnFakeDriver, testing::Values("sm_80", "sm_90"),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace kiln::test
