// SPDX-License-Identifier: Apache-2.0
// The expectations of the check of CCCL libraries, without a library.
#include <gtest/gtest.h>

#include "backends/cccl/cccl_check.hpp"

namespace kiln::test {
namespace {

using cccl::Algorithm;

// A kernel that cuda-cccl 1.2.1 compiled from the spec of the check.
constexpr const char* kReduce =
    "_ZN3cub16_V_300600_SM_8006detail6reduce18DeviceReduceKernelINS2_26policy_selector_from_typesIfyN4cuda3__"
    "47maximumIfEELNS5_9execution3__411determinism15__determinism_tE1EEELb1EPsPfyyS8_ffNS5_3std3__48identityEEEvT1_T2_"
    "T4_NS0_13GridEvenShareIT3_EET5_T7_T8_";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CcclCheck, EveryAlgorithmHasASpecWhoseTextIsStable) {
  for (int i = 0; i <= static_cast<int>(Algorithm::SegmentedSort); ++i) {
    const auto algorithm = static_cast<Algorithm>(i);
    const cccl::Spec spec = cccl_check_spec(algorithm);
    EXPECT_EQ(spec.algorithm, algorithm);
    EXPECT_TRUE(spec.validate().has_value()) << to_string(algorithm);
    EXPECT_EQ(cccl::Spec::parse(spec.text()).value().text(), spec.text());
  }
}

TEST(CcclCheck, AcceptsTheKernelsOfAKnownRelease) {
  EXPECT_TRUE(check_cccl_kernels(Algorithm::Reduce, {"other", kReduce}).has_value());
  // A newer version of CCCL.
  EXPECT_TRUE(check_cccl_kernels(Algorithm::Reduce, {changed(kReduce, "300600", "300700")}).has_value());
}

TEST(CcclCheck, RejectsKernelsOfOtherParameters) {
  const std::pair<const char*, const char*> changes[] = {
      {"SM_800", "SM_900"},          // architecture
      {"E1EEE", "E0EEE"},            // determinism
      {"PsPf", "PiPf"},              // type of the input
      {"maximumIfE", "minimumIfE"},  // operator
  };
  for (const auto& [from, to] : changes) {
    const Status checked = check_cccl_kernels(Algorithm::Reduce, {changed(kReduce, from, to)});
    ASSERT_FALSE(checked.has_value()) << from;
    EXPECT_EQ(checked.error().code, Code::CompileFailed);
    EXPECT_NE(checked.error().message.find("reduce"), std::string::npos);
  }
  EXPECT_FALSE(check_cccl_kernels(Algorithm::Reduce, {}).has_value());
  EXPECT_FALSE(check_cccl_kernels(Algorithm::Scan, {kReduce}).has_value());
}

TEST(CcclCheck, RejectsSwappedOperatorsOfOneType) {
  const std::string kernel =
      "void cub::_V_300600_SM_800::detail::three_way_partition::DeviceThreeWayPartitionKernel<short*, double*, float*, "
      "unsigned short*, long long*, first<&kiln_first>{false, 4, 4}, second<&kiln_second>{false, 12, 4}>(int)";
  EXPECT_TRUE(check_cccl_kernels(Algorithm::ThreeWayPartition, {kernel}).has_value());
  std::string swapped = changed(kernel, "kiln_first>{false, 4", "kiln_second>{false, 12");
  swapped = changed(swapped, "second<&kiln_second>{false, 12", "second<&kiln_first>{false, 4");
  // The parameters of a kernel repeat the types.
  swapped += "(first<&kiln_first>{false, 4, 4}, second<&kiln_second>{false, 12, 4})";
  EXPECT_FALSE(check_cccl_kernels(Algorithm::ThreeWayPartition, {swapped}).has_value());
}

TEST(CcclCheck, ParametersAreThoseOfTheNewestReleaseThatIsNotNewer) {
  EXPECT_EQ(cccl_parameters_for(3004000), nullptr);
  EXPECT_TRUE(cccl_parameters_for(3005002)->reduce_takes_init);
  EXPECT_FALSE(cccl_parameters_for(3006000)->reduce_takes_init);
  EXPECT_EQ(cccl_parameters_for(4000000), &cccl_releases().front());
}

}  // namespace
}  // namespace kiln::test
