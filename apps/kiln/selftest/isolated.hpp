// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <kiln/result.hpp>

namespace kiln::cli::selftest {

/// Runs a function in a forked child and returns its text. A child that crashes, ends by itself or takes longer than
/// `timeout` is an error and does not affect this process. What the child prints goes to standard error. The calling
/// process must have one thread and must not have opened a driver.
Result<std::string> run_in_child(const std::function<std::string()>& function, std::chrono::milliseconds timeout);

}  // namespace kiln::cli::selftest
