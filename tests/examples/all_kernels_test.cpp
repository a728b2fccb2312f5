// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>

#include "examples/examples.hpp"

namespace kiln::test {
namespace {

TEST_F(Examples, ManyKernelsComputesAll31KernelsOnPocl) {
  const nlohmann::json all = report({"--backend", "opencl", "--all"});
  EXPECT_EQ(all["compiled"], 31) << all;
  EXPECT_EQ(all["checked"], 31) << all;
  EXPECT_EQ(all["not_requested"], 0);
  std::printf("figure: %d of 31 kernels are right on PoCL\n", all.value("checked", -1));
  std::printf("figure: all 31 semiring kernels on PoCL, cold: startup %.3f ms, all results after %.1f s\n",
              all.value("startup_ms", 0.0), all.value("total_ms", 0.0) / 1000);
}

}  // namespace
}  // namespace kiln::test
