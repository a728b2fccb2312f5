#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "bench/harness.hpp"

namespace kiln::bench {

/// How long a child took: by its own words, which are the first number that it prints (nanoseconds from its main), and
/// seen from outside.
struct Times {
  double from_main_us = 0;
  double from_exec_ms = 0;
  std::string said;  ///< what else it printed behind that number
};

/// Runs a program to its end, with this process's environment.
Result<Times> run_child(const std::vector<std::string>& arguments);

/// That, as one side of a comparison: which of its times counts.
Plan::Side child_side(const std::vector<std::string>& arguments, double Times::*which);

/// The path of a program that lies beside this one.
std::string beside_this_program(const char* name);

}  // namespace kiln::bench
