// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <fstream>
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
  /// Expects that no run of an operation waited for a compiler: the program requested its units and waited for them
  /// before.
  static void expect_no_run_waits_for_compiler(const std::string& trace) {
    std::ifstream file(trace);
    const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
    ASSERT_TRUE(json.is_object()) << trace;
    for (const nlohmann::json& event : json["traceEvents"]) {
      if (event.value("cat", "") != "blocking_compile") continue;
      EXPECT_EQ(event["args"].value("dispatch", 0), 0) << event;
    }
  }
  void expect_clean_audit(const std::string& trace) {
    const Ran audit = run({"audit", trace});
    EXPECT_EQ(audit.exit_code, 0) << audit.out;
    EXPECT_EQ(run({"audit", trace, "--json"}).json().value("verdict", ""), "clean") << audit.out;
  }
};

}  // namespace kiln::test
