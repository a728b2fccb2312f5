// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

class Explain : public KilnProgram {
 protected:
  void SetUp() override {
    KilnProgram::SetUp();
    write("include/a.h", "#define A 1\n");
    write("k.cu", "#include <a.h>\nextern \"C\" __global__ void k(int* x) { *x = A; }\n");
    ASSERT_EQ(run({"compile", "k.cu", "--arch", "sm_80", "-Iinclude"}).exit_code, 0);
  }
  nlohmann::json explain(std::vector<std::string> more = {}, const std::map<std::string, std::string>& variables = {}) {
    std::vector<std::string> command = {"explain", "k.cu", "--arch", "sm_80", "-Iinclude", "--json"};
    command.insert(command.end(), more.begin(), more.end());
    const Ran ran = run(command, variables);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return ran.json()["results"][0];
  }
  // Returns the difference of this input, or null.
  static nlohmann::json difference(const nlohmann::json& result, const std::string& input) {
    for (const auto& each : result["differences"]) {
      if (each["input"] == input) return each;
    }
    return {};
  }
};

TEST_F(Explain, ReportsHitForUnchangedFile) {
  const auto result = explain();
  EXPECT_EQ(result["hit"], true);
  EXPECT_EQ(result["origin"], "disk");
  EXPECT_TRUE(result["differences"].empty());
}

TEST_F(Explain, ReportsEditedHeaderWithBothDigests) {
  write("include/a.h", "#define A 2\n");
  const auto result = explain();
  EXPECT_EQ(result["hit"], false);
  const auto header = difference(result, "header");
  ASSERT_FALSE(header.is_null()) << result;
  EXPECT_NE(header["name"].get<std::string>().find("include/a.h"), std::string::npos);
  EXPECT_FALSE(header["before"].get<std::string>().empty());
  EXPECT_FALSE(header["after"].get<std::string>().empty());
  EXPECT_NE(header["before"], header["after"]);
  const Ran text = run({"explain", "k.cu", "--arch", "sm_80", "-Iinclude"});
  EXPECT_NE(text.out.find("include/a.h"), std::string::npos) << text.out;
}

TEST_F(Explain, TextShowsFirstDifferencesAndJsonAll) {
  std::string includes;
  for (int i = 0; i < 25; ++i) {
    const std::string name = "h" + std::to_string(i) + ".h";
    write("include/" + name, "\n");
    includes += "#include <" + name + ">\n";
  }
  write("k.cu", includes + "extern \"C\" __global__ void k(int* x) {}\n");
  ASSERT_EQ(run({"compile", "k.cu", "--arch", "sm_80", "-Iinclude"}).exit_code, 0);
  for (int i = 0; i < 25; ++i) write("include/h" + std::to_string(i) + ".h", "// edited\n");
  const Ran text = run({"explain", "k.cu", "--arch", "sm_80", "-Iinclude"});
  EXPECT_NE(text.out.find("  … and 5 more; --json prints all\n"), std::string::npos) << text.out;
  EXPECT_EQ(std::count(text.out.begin(), text.out.end(), '\n'), 1 + 20 + 1 + 1) << text.out;
  EXPECT_EQ(explain()["differences"].size(), 25U);
}

TEST_F(Explain, ReportsNewOption) {
  const auto result = explain({"--", "-use_fast_math"});
  EXPECT_EQ(result["hit"], false);
  EXPECT_EQ(difference(result, "option")["name"], "-use_fast_math") << result;
}

TEST_F(Explain, ReportsDifferentTarget) {
  const Ran ran = run({"explain", "k.cu", "--arch", "sm_90", "-Iinclude", "--json"});
  const auto target = difference(ran.json()["results"][0], "target");
  EXPECT_EQ(target["before"], "sm_80") << ran.out;
  EXPECT_EQ(target["after"], "sm_90") << ran.out;
}

TEST_F(Explain, CompilesNothingAndCheckReturnsOneOnMiss) {
  const std::vector<std::string> command = {"explain", "k.cu", "--arch", "sm_80", "-Iinclude", "--check"};
  EXPECT_EQ(run(command).exit_code, 0);
  write("include/a.h", "#define A 3\n");
  EXPECT_EQ(run(command).exit_code, 1);
  EXPECT_EQ(run(command).exit_code, 1);
}

TEST_F(Explain, ReportsFileWithoutEarlierBuild) {
  write("other.cu", kSmallKernel);
  const Ran ran = run({"explain", "other.cu", "--arch", "sm_80", "--json"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_TRUE(ran.json()["results"][0]["nearest"].is_null()) << ran.out;
  EXPECT_FALSE(ran.json()["results"][0]["summary"].get<std::string>().empty());
}

}  // namespace
}  // namespace kiln::test
