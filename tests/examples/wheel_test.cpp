// SPDX-License-Identifier: Apache-2.0
// Bundles in Python wheels, as pip installs them.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class Wheel : public KilnProgram {
 protected:
  /// Runs Python with the contents of the wheel and without a compiler.
  Ran python(const std::string& program) {
    return run_program({KILN_PYTHON, "-c", program}, {{"PYTHONPATH", path("site")}, {"KILN_COMPILE", "never"}});
  }
  std::map<std::string, std::string> with_bundle(const std::string& bundle) {
    return {{"KILN_BUNDLES", bundle}, {"KILN_TRUST_UNSIGNED", "true"}, {"KILN_COMPILE", "never"}};
  }
};

// One case, because pip takes most of the time.
TEST_F(Wheel, BundlesInInstalledWheelAreServed) {
  if (run_program({KILN_PYTHON, "-c", "import pip"}).exit_code != 0) GTEST_SKIP() << "this Python has no pip";
  const std::string bundle = fs::path(KILN_EMBEDDED_BESIDE).parent_path() / "embedded.kiln";
  const Ran made = run_program({KILN_PYTHON, KILN_MAKE_WHEEL, root_, bundle, KILN_EMBEDDED_EXTENSION});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const Ran installed =
      run_program({KILN_PYTHON, "-m", "pip", "install", "--no-index", "--no-compile", "--no-cache-dir",
                   "--disable-pip-version-check", "--target", path("site"), path("heat-1.0-py3-none-any.whl")});
  ASSERT_EQ(installed.exit_code, 0) << installed.out << installed.err;

  // As a file in the package data.
  const Ran where = python("import heat; print(heat.BUNDLE, end='')");
  ASSERT_EQ(where.out, path("site/heat/heat.kiln")) << where.err;
  const Ran verified = run({"bundle", "verify", where.out}, with_bundle(""));
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  const Ran served = run_program({KILN_EMBEDDED_BESIDE}, with_bundle(where.out));
  EXPECT_EQ(served.exit_code, 0) << served.err;
  EXPECT_NE(served.out.find("compiled: 0\n"), std::string::npos) << served.out;

  // In a library that Python loads after its start.
  const Ran loaded = python("import heat; print(heat.compiled())");
  EXPECT_EQ(loaded.exit_code, 0) << loaded.err;
  EXPECT_EQ(loaded.out, "0\n") << loaded.err;
}

}  // namespace
}  // namespace kiln::test
