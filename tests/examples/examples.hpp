#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "apps/run_kiln.hpp"

namespace kiln::test {

using Variables = std::map<std::string, std::string>;

/// Runs the examples like a user. Each test has its own cache, which is initially empty.
class Examples : public KilnProgram {
 protected:
  Ran many_kernels(std::vector<std::string> arguments, const Variables& variables = {}) {
    arguments.insert(arguments.begin(), KILN_MANY_KERNELS);
    return run_program(arguments, variables);
  }
  /// Returns the printed JSON of a run that must succeed.
  nlohmann::json report(const std::vector<std::string>& arguments, const Variables& variables = {}) {
    std::vector<std::string> all = arguments;
    all.emplace_back("--json");
    const Ran ran = many_kernels(all, variables);
    EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
    const nlohmann::json json = ran.json();
    if (!json.is_object()) ADD_FAILURE() << "not JSON: " << ran.out << ran.err;
    return json.is_object() ? json : nlohmann::json::object();
  }
};

}  // namespace kiln::test
