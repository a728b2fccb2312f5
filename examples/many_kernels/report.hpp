// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"

namespace semiring {

/// The results of one run of many_kernels.
struct Report {
  std::string backend;
  std::string device;          ///< the target for which the kernels were compiled
  double startup_ms = 0;       ///< time to open a session and request the units
  double warmup_ms = 0;        ///< time waited for all requested kernels, before the first use of one
  double first_result_ms = 0;  ///< time from the same start until the first kernel's result was on the host
  double total_ms = 0;
  std::size_t available = 0;  ///< number of kernels in the library
  std::size_t threads = 0;    ///< number of threads of the process at the end of the run
  kiln::SessionStatus status;
  std::vector<kiln::UndeclaredUse> undeclared;
  std::vector<std::pair<std::string, Outcome>> kernels;

  std::size_t count(Outcome outcome) const;
  /// Returns the number of kernels of the library that the program did not request, and that were not compiled.
  std::size_t not_requested() const { return available - status.submitted; }
  /// Returns whether the device ran any kernel. A driver can accept every launch and compute nothing, like the fake
  /// driver of the tests.
  bool executed() const { return count(Outcome::Untouched) < kernels.size(); }
  /// Returns whether all results are right and no undeclared kernel was used. A CUDA driver may execute nothing.
  bool good() const;
};

void print_json(const Report& report);
void print_table(const Report& report);

}  // namespace semiring
