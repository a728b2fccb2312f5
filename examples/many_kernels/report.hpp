#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"

namespace semiring {

/// What a run of many_kernels found out.
struct Report {
  std::string backend;
  std::string device;          ///< the target for which the kernels were compiled
  double startup_ms = 0;       ///< to open a session and request what will be needed
  double first_result_ms = 0;  ///< from the same moment until the first kernel's result was on the host
  double total_ms = 0;
  std::size_t threads = 0;  ///< of the process, when all was done
  kiln::SessionStatus status;
  std::vector<kiln::UndeclaredUse> undeclared;
  std::vector<std::pair<std::string, Outcome>> kernels;

  std::size_t count(Outcome outcome) const;
  /// Whether the device ran anything: a driver may take every launch and compute nothing, as a test's double does.
  bool executed() const { return count(Outcome::Untouched) < kernels.size(); }
  /// Whether there is nothing to complain of.
  bool good() const;
};

void print_json(const Report& report);
void print_table(const Report& report);

}  // namespace semiring
