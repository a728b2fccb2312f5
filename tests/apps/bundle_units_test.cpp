// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "apps/run_kiln.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

class BundleUnits : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    write("app/k.cu", std::string("#include \"one.h\"\n") + kSmallKernel);
    write("app/one.h", "#include <two.h>\n#define ONE 1\n");
    write("app/more headers/two.h", "#define TWO 2\n");
    write("app/kiln.toml",
          "architectures = [\"sm_80\"]\n[[unit]]\nsource = \"k.cu\"\ninclude = [\"more headers\"]\n"
          "entries = [\"k\"]\noptions = [\"-DTEXT=\\\"a\\\\nb\\\"\"]\n[[cccl]]\nspec = \"reduce_sum_i32\"\n");
  }
};

TEST_F(BundleUnits, AreFunctionsInNamespaceNamedAfterFile) {
  const Ran ran = run({"bundle", "header", "app/kiln.toml", "-o", "app_units.hpp"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string header = read_text(path("app_units.hpp"));
  for (const char* part :
       {"namespace app_units {", "inline kiln::Unit k_cu() {", "source += \"#include \\\"one.h\\\"\\n\";",
        ".with_entry(\"k\")", ".with_include_root(\".\")", ".with_include_root(\"more headers\")",
        ".with_option(\"-DTEXT=\\\"a\\\\nb\\\"\")", "all() { return {k_cu()}; }"}) {
    EXPECT_NE(header.find(part), std::string::npos) << part << " is not in\n" << header;
  }
  EXPECT_EQ(header.find(root_), std::string::npos) << "the header contains a local path:\n" << header;
  const Ran shown = run({"bundle", "header", "app/kiln.toml", "-o", "-"});
  EXPECT_NE(shown.out.find("namespace units {"), std::string::npos) << shown.out << shown.err;
}

TEST_F(BundleUnits, InstancesOfFamilyShareFunctionWithPreamble) {
  write("app/kiln.toml",
        "[[family]]\nname = \"f.cu\"\npreamble = \"k.cu\"\noptions = [\"-DN=4\"]\n"
        "instances = {one = \"K(one)\\n\", \"two<float>\" = \"\"}\n");
  const Ran ran = run({"bundle", "header", "app/kiln.toml", "-o", "-"});
  for (const char* part :
       {"inline const kiln::Unit& f_cu() {", "source += \"#include \\\"one.h\\\"\\n\";",
        "return kiln::Unit::cuda(\"f.cu\", \"\")\n      .with_preamble(std::move(source))", ".with_include_root(\".\")",
        ".with_option(\"-DN=4\")", "inline kiln::Unit f_cu_one() { return f_cu().instance(\"one\", \"K(one)\\n\"); }",
        "inline kiln::Unit f_cu_two_float_() { return f_cu().instance(\"two<float>\", \"\"); }",
        "all() { return {f_cu_one(), f_cu_two_float_()}; }"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << " is not in\n" << ran.out << ran.err;
  }
}

TEST_F(BundleUnits, DoNotRewriteUpToDateHeader) {
  ASSERT_EQ(run({"bundle", "header", "app/kiln.toml", "-o", "app_units.hpp"}).exit_code, 0);
  const auto long_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(path("app_units.hpp"), long_ago);
  const Ran again = run({"bundle", "header", "app/kiln.toml", "-o", "app_units.hpp", "--json"});
  EXPECT_EQ(again.json()["written"], false) << again.out << again.err;
  EXPECT_EQ(std::filesystem::last_write_time(path("app_units.hpp")), long_ago);
  write("app/k.cu", kSmallKernel);
  ASSERT_EQ(run({"bundle", "header", "app/kiln.toml", "-o", "app_units.hpp"}).exit_code, 0);
  EXPECT_GT(std::filesystem::last_write_time(path("app_units.hpp")), long_ago);
}

TEST_F(BundleUnits, RejectDuplicateFunctionNames) {
  write("app/kiln.toml", "[[unit]]\nname = \"a.b\"\nsource = \"k.cu\"\n[[unit]]\nname = \"a-b\"\nsource = \"k.cu\"\n");
  const Ran ran = run({"bundle", "header", "app/kiln.toml", "-o", "app_units.hpp"});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_TRUE(ran.says("the function a_b")) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(path("app_units.hpp")));
}

TEST_F(BundleUnits, DepfileListsAllInputs) {
  write("app/kiln.toml",
        "architectures = [\"sm_80\", \"sm_90\"]\n[[unit]]\nsource = \"k.cu\"\ninclude = [\"more headers\"]\n");
  const Ran ran = run({"bundle", "create", "app/kiln.toml", "-o", "app.kiln", "--depfile", "app.d"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  const std::string expected = root_ + "/app.kiln: \\\n  " + root_ + "/app/k.cu \\\n  " + root_ +
                               "/app/kiln.toml \\\n  " + root_ + "/app/more\\ headers/two.h \\\n  " + root_ +
                               "/app/one.h\n";
  EXPECT_EQ(read_text(path("app.d")), expected);
  const Ran again = run({"bundle", "create", "app/kiln.toml", "-o", "app.kiln", "--depfile", "app.d"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(read_text(path("app.d")), expected) << "the depfile is the same for cache hits";
}

}  // namespace
}  // namespace kiln::test
