// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using semiring::Outcome;
using semiring::Report;

Report report(const std::string& backend, Outcome first, Outcome second) {
  Report made;
  made.backend = backend;
  made.kernels = {{"one", first}, {"two", second}};
  return made;
}

TEST(ManyKernelsReport, IsGoodIfEveryResultIsRight) {
  EXPECT_TRUE(report("opencl", Outcome::Right, Outcome::Right).good());
  EXPECT_FALSE(report("opencl", Outcome::Right, Outcome::Wrong).good());
}

TEST(ManyKernelsReport, ToleratesDriverThatComputesNothingOnlyForCuda) {
  const Report nothing = report("cuda", Outcome::Untouched, Outcome::Untouched);
  EXPECT_FALSE(nothing.executed());
  EXPECT_TRUE(nothing.good());
  EXPECT_FALSE(report("opencl", Outcome::Untouched, Outcome::Untouched).good());
  EXPECT_FALSE(report("cuda", Outcome::Right, Outcome::Untouched).good());
}

TEST(ManyKernelsReport, IsNotGoodAfterUndeclaredUse) {
  Report made = report("opencl", Outcome::Right, Outcome::Right);
  made.undeclared.push_back({"unit", "entry", "file.cpp:1"});
  EXPECT_FALSE(made.good());
}

}  // namespace
}  // namespace kiln::test
