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
  /// What `kiln doctor --json` found about something.
  nlohmann::json finding(const std::string& about) const;
};

/// A folder of its own to work in, with a home and a cache in it, and the kiln program to run there.
class KilnProgram : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string write(const std::string& name, const std::string& text);
  std::string path(const std::string& name) const { return root_ + "/" + name; }

  /// Runs `kiln arguments…` with no KILN_ variable but the cache's folder and those given; an empty value unsets one.
  Ran run(std::vector<std::string> arguments, const std::map<std::string, std::string>& variables = {});
  /// Any other program, likewise.
  Ran run_program(const std::vector<std::string>& command, const std::map<std::string, std::string>& variables = {});

  /// The origins of the results of `kiln compile … --json`.
  static std::vector<std::string> origins(const Ran& ran);

  std::string root_;
};

/// What the doctor's table says in a finding; empty where it says nothing of it.
std::string detail(const nlohmann::json& finding, const std::string& what);

inline constexpr const char* kSmallKernel = "extern \"C\" __global__ void k(float* x) { x[threadIdx.x] += 1; }\n";

}  // namespace kiln::test
