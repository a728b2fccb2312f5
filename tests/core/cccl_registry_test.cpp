// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>

#include <kiln/cccl.hpp>

#include <gtest/gtest.h>

#include "support/fixtures/workload_requirements.hpp"

namespace kiln::test {
namespace {

TEST(CcclRegistry, HasEighteenPredefinedSpecs) {
  std::set<std::string> names;
  for (const cccl::Spec& spec : cccl::predefined_specs()) names.insert(spec.name);
  const std::set<std::string> expected = {"exclusive_scan_i32",
                                          "exclusive_scan_i64",
                                          "select_i32",
                                          "select_i64",
                                          "reduce_sum_f64",
                                          "reduce_sum_i32",
                                          "segmented_reduce_sum_f64",
                                          "segmented_reduce_min_f64",
                                          "segmented_reduce_max_f64",
                                          "lower_bound_i32",
                                          "lower_bound_u64",
                                          "upper_bound_i32",
                                          "upper_bound_u64",
                                          "radix_sort_i32_i32",
                                          "radix_sort_u64_i32",
                                          "merge_sort_u64_i32",
                                          "unique_by_key_i32_i32",
                                          "unique_by_key_u64_i32"};
  EXPECT_EQ(names, expected);
  EXPECT_EQ(cccl::predefined_specs().size(), 18U);
}

TEST(CcclRegistry, SpecsAreValidAndRoundTrip) {
  std::set<std::string> texts;
  for (const cccl::Spec& spec : cccl::predefined_specs()) {
    const Status status = spec.validate();
    EXPECT_TRUE(status.has_value()) << spec.name << ": " << status.error().message;
    const Result<cccl::Spec> back = cccl::Spec::parse(spec.text());
    ASSERT_TRUE(back.has_value()) << spec.name << ": " << back.error().message;
    EXPECT_EQ(back->text(), spec.text());
    texts.insert(spec.text());
  }
  EXPECT_EQ(texts.size(), 18U);
}

// The library compiles these without and all others with -default-device; each option set has its own precompiled
// headers.
bool compiled_plainly(const cccl::Spec& spec) {
  return spec.algorithm == cccl::Algorithm::ThreeWayPartition || spec.algorithm == cccl::Algorithm::Reduce ||
         spec.algorithm == cccl::Algorithm::MergeSort || spec.algorithm == cccl::Algorithm::UniqueByKey;
}

TEST(CcclRegistry, StartsWithLongestAndDisjointHeaders) {
  EXPECT_EQ(cccl::predefined_specs()[0].algorithm, cccl::Algorithm::RadixSort);
  EXPECT_TRUE(compiled_plainly(cccl::predefined_specs()[1]))
      << "each of two workers precompiles headers that other specs use";
}

TEST(CcclRegistry, FindsByNameOrListsNames) {
  EXPECT_EQ(cccl::find_predefined("merge_sort_u64_i32").value().algorithm, cccl::Algorithm::MergeSort);
  const Result<cccl::Spec> none = cccl::find_predefined("radix_sort_u64");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::InvalidArgument);
  EXPECT_NE(none.error().message.find("radix_sort_u64_i32"), std::string::npos);
  EXPECT_NE(none.error().message.find("exclusive_scan_i64"), std::string::npos);
}

TEST(CcclRegistry, MatchesTypedInterface) {
  EXPECT_EQ(cccl::exclusive_scan<std::int32_t>().text(), cccl::find_predefined("exclusive_scan_i32").value().text());
  EXPECT_EQ((cccl::radix_sort_pairs<std::uint64_t, std::int32_t>().unit().key()),
            cccl::find_predefined("radix_sort_u64_i32").value().unit().key());
  EXPECT_EQ(cccl::segmented_reduce<double>(cccl::OperatorKind::Minimum).name, "segmented_reduce_min_f64");
  EXPECT_EQ(cccl::inclusive_scan<float>().name, "inclusive_scan_f32");
}

TEST(CcclRegistry, WrapsPredicateExpressionAndKeepsFunction) {
  const cccl::Spec wrapped = cccl::select<std::int64_t>("x > 3 // all that is large");
  ASSERT_EQ(wrapped.operators.size(), 2U);
  const std::string& source = wrapped.operators[0].source;
  EXPECT_NE(source.find("const long long x = *static_cast<const long long*>(argument);"), std::string::npos) << source;
  EXPECT_NE(source.find("x > 3 // all that is large\n"), std::string::npos) << source;
  EXPECT_EQ(wrapped.operators[0].name, "kiln_select");

  const std::string whole = "extern \"C\" __device__ void kiln_select(void* x, void* r) { *(bool*)r = *(int*)x; }";
  EXPECT_EQ(cccl::select<std::int32_t>(whole).operators[0].source, whole);
}

TEST(CcclRegistry, CoversPredefinedWorkload) {
  const std::pair<const char*, std::size_t> counts[] = {
      {"within", 2}, {"to_wkb", 2}, {"sjoin", 12}, {"overlay", 6}, {"dissolve", 3}};
  for (const auto& [module, count] : counts) {
    const WorkloadRequirement& need = workload_requirement(module);
    EXPECT_EQ(need.module, std::string(module));
    std::set<std::string> names;
    for (const std::string& name : need.specs) {
      EXPECT_TRUE(cccl::find_predefined(name).has_value()) << name;
      names.insert(name);
    }
    EXPECT_EQ(names.size(), count) << module;
  }
}

}  // namespace
}  // namespace kiln::test
