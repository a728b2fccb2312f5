#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

class Doctor : public KilnProgram {
 protected:
  static nlohmann::json finding(const Ran& ran, const std::string& about) {
    const auto json = ran.json();
    for (const auto& each : json["findings"]) {
      if (each["about"] == about) return each;
    }
    ADD_FAILURE() << "nothing about " << about << " in " << ran.out;
    return {};
  }
};

TEST_F(Doctor, FindsACompilerAndSaysWhatToDoAboutEachFinding) {
  const Ran ran = run({"doctor", "--json"});
  EXPECT_EQ(ran.exit_code, 0) << ran.out;
  const auto json = ran.json();
  EXPECT_EQ(json["useful"], true);
  for (const auto& each : json["findings"]) {
    EXPECT_NE(each["text"], "") << each;
    EXPECT_NE(each["advice"], "") << each;
  }
  for (const char* about :
       {"NVRTC", "NVIDIA driver", "CCCL", "OpenCL", "worker", "headers", "cache", "configuration"}) {
    EXPECT_FALSE(finding(ran, about).is_null());
  }
  const auto nvrtc = finding(ran, "NVRTC");
  ASSERT_FALSE(nvrtc["details"].empty());
  for (const auto& each : nvrtc["details"]) EXPECT_NE(each["why"], "") << each;
  EXPECT_EQ(finding(ran, "cache")["state"], "good");
}

TEST_F(Doctor, SaysWhyACacheCannotBeUsedAndStillReturnsZero) {
  write("cache", "a file where a folder should be\n");
  const Ran ran = run({"doctor", "--json"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(finding(ran, "cache")["state"], "problem");
  EXPECT_NE(finding(ran, "cache")["text"].get<std::string>().find("not a folder"), std::string::npos);
}

TEST_F(Doctor, RepeatsTheConfigurationsWarnings) {
  const Ran ran = run({"doctor", "--json"}, {{"KILN_COMPILES", "never"}});
  const auto configuration = finding(ran, "configuration");
  EXPECT_EQ(configuration["state"], "problem");
  EXPECT_NE(configuration["details"][0]["warning"].get<std::string>().find("KILN_COMPILE?"), std::string::npos);
}

TEST_F(Doctor, SaysThatTheWorkerIsMissing) {
  const Ran ran = run({"doctor", "--json"}, {{"KILN_WORKER", path("nowhere")}});
  EXPECT_EQ(finding(ran, "worker")["state"], "problem");
}

TEST_F(Doctor, SaysHowManyWorkersThereMayBeAndWhetherHeadersArePrecompiled) {
  const Ran on = run({"doctor", "--json"}, {{"KILN_JOBS", "7"}, {"KILN_PCH", "on"}});
  EXPECT_NE(finding(on, "worker")["text"].get<std::string>().find("at most 7"), std::string::npos);
  EXPECT_EQ(finding(on, "headers")["state"], "good");
  EXPECT_NE(finding(on, "headers")["text"].get<std::string>().find("parsed once"), std::string::npos);
  const Ran off = run({"doctor", "--json"}, {{"KILN_JOBS", "0"}, {"KILN_PCH", "off"}});
  EXPECT_NE(finding(off, "worker")["text"].get<std::string>().find("jobs = 0"), std::string::npos);
  EXPECT_EQ(finding(off, "headers")["state"], "note");
  EXPECT_NE(finding(off, "headers")["text"].get<std::string>().find("pch = off"), std::string::npos);
}

TEST_F(Doctor, WritesForPeopleToo) {
  const Ran ran = run({"doctor"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_NE(ran.out.find("NVIDIA driver:"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find('\033'), std::string::npos) << "no colours in a pipe";
}

}  // namespace
}  // namespace kiln::test
