#pragma once

#include <string>
#include <vector>

#include <kiln/cccl.hpp>

namespace kiln::test {

/// What the modules of the founding workload (W3) need of the founding specs.
struct FoundingNeed {
  const char* module;
  std::vector<std::string> specs;

  Units units() const {
    Units all;
    for (const std::string& name : specs) all.push_back(cccl::named(name).value());
    return all;
  }
};

inline const std::vector<FoundingNeed>& founding_needs() {
  static const std::vector<FoundingNeed> needs = {
      {"within", {"select_i32", "select_i64"}},
      {"to_wkb", {"exclusive_scan_i32", "exclusive_scan_i64"}},
      {"sjoin",
       {"exclusive_scan_i32", "exclusive_scan_i64", "select_i32", "select_i64", "radix_sort_i32_i32",
        "radix_sort_u64_i32", "merge_sort_u64_i32", "lower_bound_i32", "lower_bound_u64", "upper_bound_i32",
        "upper_bound_u64", "segmented_reduce_min_f64"}},
      {"overlay",
       {"exclusive_scan_i32", "exclusive_scan_i64", "radix_sort_i32_i32", "radix_sort_u64_i32", "unique_by_key_i32_i32",
        "unique_by_key_u64_i32"}},
      {"dissolve", {"radix_sort_i32_i32", "radix_sort_u64_i32", "merge_sort_u64_i32"}},
  };
  return needs;
}

inline const FoundingNeed& founding_need(const std::string& module) {
  for (const FoundingNeed& need : founding_needs()) {
    if (need.module == module) return need;
  }
  return founding_needs().front();
}

}  // namespace kiln::test
