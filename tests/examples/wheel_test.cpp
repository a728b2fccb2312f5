// Bundles in Python wheels, as pip installs them.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;

class Wheel : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    if (run_program({"python3", "-m", "pip", "--version"}).exit_code != 0) GTEST_SKIP() << "no pip here";
    const std::string bundle = fs::path(KILN_EMBEDDED_BESIDE).parent_path() / "embedded.kiln";
    const Ran made = run_program({"python3", KILN_MAKE_WHEEL, root_, bundle, KILN_EMBEDDED_EXTENSION});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const Ran installed = run_program({"python3", "-m", "pip", "install", "--no-index", "--disable-pip-version-check",
                                       "--no-cache-dir", "--target", path("site"), path("heat-1.0-py3-none-any.whl")});
    ASSERT_EQ(installed.exit_code, 0) << installed.out << installed.err;
  }
  Ran python(const std::string& program) {
    return run_program({"python3", "-c", program}, {{"PYTHONPATH", path("site")}, {"KILN_COMPILE", "never"}});
  }
};

TEST_F(Wheel, HasABundleThatIsWholeAfterPipHasInstalledIt) {
  const Ran verified = run({"bundle", "verify", path("site/heat/heat.kiln")}, {{"KILN_TRUST_UNSIGNED", "true"}});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
}

TEST_F(Wheel, HasABundleThatProgramsAreServedFrom) {
  const Ran where = python("import heat; print(heat.BUNDLE, end='')");
  ASSERT_EQ(where.out, path("site/heat/heat.kiln")) << where.err;
  const Ran ran =
      run_program({KILN_EMBEDDED_BESIDE},
                  {{"KILN_BUNDLES", where.out}, {"KILN_TRUST_UNSIGNED", "true"}, {"KILN_COMPILE", "never"}});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("compiled: 0\n"), std::string::npos) << ran.out;
}

TEST_F(Wheel, HasALibraryWhoseBundleIsFoundOnceItIsLoaded) {
  const Ran ran = python("import heat; print(heat.compiled())");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "0\n") << ran.err;
}

}  // namespace
}  // namespace kiln::test
