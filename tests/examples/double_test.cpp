// many_kernels with CUDA: kernels that NVRTC really compiles, and a double of the driver that takes them as the real
// one would and computes nothing.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "examples/examples.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {
namespace {

class ExamplesOnADouble : public Examples, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    Examples::SetUp();
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  }
  nlohmann::json run_on(const std::string& devices, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"--backend", "cuda"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return report(arguments, {{"KILN_DRIVER", KILN_DRIVER_DOUBLE}, {"KILN_DOUBLE_DEVICES", devices}});
  }
};

TEST_P(ExamplesOnADouble, ManyKernelsCompilesFiveAndItsSecondProcessNone) {
  const nlohmann::json first = run_on(GetParam());
  EXPECT_EQ(first["compiled"], 5) << first;
  EXPECT_EQ(first["found"], 0);
  EXPECT_EQ(first["device"], GetParam());
  EXPECT_EQ(first["executed"], false) << "a double computes nothing, and this must be told";
  EXPECT_EQ(first["checked"], 0);

  const nlohmann::json second = run_on(GetParam());
  EXPECT_EQ(second["compiled"], 0) << second;
  EXPECT_EQ(second["found"], 5);
  std::printf(
      "figure: many_kernels through the driver double, %s: compiled %d then %d, start-up %.3f ms then %.3f ms\n",
      GetParam().c_str(), first.value("compiled", -1), second.value("compiled", -1), first.value("startup_ms", 0.0),
      second.value("startup_ms", 0.0));
}

TEST_P(ExamplesOnADouble, ManyKernelsLaunchesAllThirtyOne) {
  const nlohmann::json all = run_on(GetParam(), {"--all"});
  EXPECT_EQ(all["compiled"], 31) << all;
  EXPECT_EQ(all["failed"], 0);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ExamplesOnADouble, testing::Values("sm_80", "sm_90"),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace kiln::test
