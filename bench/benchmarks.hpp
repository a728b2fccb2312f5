// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "bench/support/harness.hpp"

namespace kiln::bench {

using Outcomes = std::vector<Outcome>;

/// Adds the outcome of a comparison, or returns its error.
inline Status add(Outcomes& outcomes, Result<Outcome> outcome) {
  if (!outcome) return std::move(outcome).error();
  outcomes.push_back(std::move(*outcome));
  return {};
}

/// A benchmark: one function in one file, and one line in the table of main.cpp.
struct Benchmark {
  const char* name;
  const char* meaning;
  Result<Outcomes> (*run)();
};

Result<Outcomes> disk_hit();
Result<Outcomes> disk_hit_scale();
Result<Outcomes> new_process_hit();
Result<Outcomes> cold_compile();
Result<Outcomes> worker_overhead();
Result<Outcomes> workers_cold8();
Result<Outcomes> cccl_cold18();
Result<Outcomes> cccl_first18();
Result<Outcomes> cccl_four_targets();
Result<Outcomes> request_18();
Result<Outcomes> get_handle();
Result<Outcomes> get_recipe();
Result<Outcomes> bundle_open();
Result<Outcomes> bundle_get();
Result<Outcomes> remote_bytes();
Result<Outcomes> remote_hit();
Result<Outcomes> workload_sjoin();
Result<Outcomes> workload_all();
Result<Outcomes> workload_31();

}  // namespace kiln::bench
