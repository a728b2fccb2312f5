// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "examples/examples.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/perfetto_rules.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {
namespace {

// Returns the number of kernels for which a trace has slices of a category. All have the same unit name; `field`
// distinguishes them: the key of the artifact or, for a launch, the name of the kernel.
std::size_t kernels(const std::string& trace, const std::string& category, const std::string& field = "key") {
  std::set<std::string> found;
  const nlohmann::json json = nlohmann::json::parse(trace, nullptr, false);
  if (!json.is_object()) return 0;
  for (const nlohmann::json& event : json["traceEvents"]) {
    if (event["ph"] != "X" || event.value("cat", "") != category) continue;
    if (const std::string name = event["args"].value(field, ""); !name.empty()) found.insert(name);
  }
  return found.size();
}

class ExampleTrace : public Examples {
 protected:
  // Runs two processes one after the other, each with its trace.
  void run_twice(const std::string& backend, const Variables& variables = {}) {
    for (const char* file : {"first.json", "second.json"}) {
      (void)report({"--backend", backend, "--trace", path(file)}, variables);
      for (const std::string& problem : trace_problems(read_text(path(file)))) ADD_FAILURE() << file << ": " << problem;
    }
  }
  void expect_compiles_in_the_first_alone() {
    const std::string first = read_text(path("first.json"));
    const std::string second = read_text(path("second.json"));
    EXPECT_EQ(kernels(first, "compiled"), 5U);
    EXPECT_EQ(second.find("\"cat\":\"compiled\""), std::string::npos);
    EXPECT_EQ(second.find("\"cat\":\"blocking_compile\""), std::string::npos);
    EXPECT_EQ(kernels(second, "hit"), 5U);
    for (const std::string* trace : {&first, &second}) {
      EXPECT_EQ(kernels(*trace, "loaded"), 5U);
      EXPECT_EQ(kernels(*trace, "launched", "message"), 5U);
    }
  }
};

TEST_F(ExampleTrace, IsValidForPerfettoAndSecondProcessShowsNoCompile) {
  run_twice("opencl");
  expect_compiles_in_the_first_alone();
  expect_no_run_waits_for_compiler(path("first.json"));
  expect_clean_audit(path("second.json"));
}

TEST_F(ExampleTrace, IsEqualWithFakeDriver) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  run_twice("cuda", {{"KILN_DRIVER", KILN_FAKE_DRIVER}, {"KILN_FAKE_DRIVER_DEVICES", "sm_90"}});
  expect_compiles_in_the_first_alone();
}

}  // namespace
}  // namespace kiln::test
