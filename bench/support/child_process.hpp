// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "bench/support/harness.hpp"

namespace kiln::bench {

/// The duration of a child: as measured by the child, which prints the nanoseconds since its main as the first number,
/// and as measured by this process.
struct Times {
  double from_main_us = 0;
  double from_exec_ms = 0;
  std::string said;  ///< output after that number
};

/// Runs a program to its end, with the environment of this process.
Result<Times> run_child(const std::vector<std::string>& arguments);

/// Returns a side of a comparison that runs a program; `which` selects its time.
Plan::Side child_side(const std::vector<std::string>& arguments, double Times::*which);

/// Returns the path of a program in the directory of this one.
std::string beside_this_program(const char* name);

}  // namespace kiln::bench
