// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kiln::test {

struct Ran {
  int exit_code = -1;
  std::string out;
  std::string err;

  nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
  bool says(const std::string& text) const { return err.find(text) != std::string::npos; }
  /// Returns the result of one check of `kiln doctor --json`.
  nlohmann::json finding(const std::string& check) const;
};

/// A fixture that runs kiln in a temporary directory with its own home and cache.
class KilnProgram : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string write(const std::string& name, const std::string& text);
  std::string path(const std::string& name) const { return root_ + "/" + name; }

  /// Runs `kiln arguments…` without KILN_ variables except the cache directory and the given ones. An empty value
  /// unsets a variable.
  /// Expects that JSON output is as the schema of the command states.
  Ran run(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& variables = {});
  /// Runs another program in the same environment.
  Ran run_program(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables = {});

  /// Returns the origins of the results of `kiln compile … --json`.
  static std::vector<std::string> origins(const Ran& ran);

  std::string root_;
};

/// Returns a value from the details of a doctor check; empty if there is none.
std::string detail(const nlohmann::json& finding, const std::string& what);

inline constexpr const char* kSmallKernel = "extern \"C\" __global__ void k(float* x) { x[threadIdx.x] += 1; }\n";

}  // namespace kiln::test
