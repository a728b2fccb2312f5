#include "apps/run_kiln.hpp"

namespace kiln::test {
namespace {

class Doctor : public KilnProgram {};

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
    EXPECT_FALSE(ran.finding(about).is_null());
  }
  const auto nvrtc = ran.finding("NVRTC");
  ASSERT_FALSE(nvrtc["details"].empty());
  for (const auto& each : nvrtc["details"]) EXPECT_NE(each["why"], "") << each;
  EXPECT_EQ(ran.finding("cache")["state"], "good");
}

TEST_F(Doctor, SaysWhyACacheCannotBeUsedAndStillReturnsZero) {
  write("cache", "a file where a folder should be\n");
  const Ran ran = run({"doctor", "--json"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.finding("cache")["state"], "problem");
  EXPECT_NE(ran.finding("cache")["text"].get<std::string>().find("not a folder"), std::string::npos);
}

TEST_F(Doctor, RepeatsTheConfigurationsWarnings) {
  const Ran ran = run({"doctor", "--json"}, {{"KILN_COMPILES", "never"}});
  const auto configuration = ran.finding("configuration");
  EXPECT_EQ(configuration["state"], "problem");
  EXPECT_NE(configuration["details"][0]["warning"].get<std::string>().find("KILN_COMPILE?"), std::string::npos);
}

TEST_F(Doctor, SaysThatTheWorkerIsMissing) {
  const Ran ran = run({"doctor", "--json"}, {{"KILN_WORKER", path("nowhere")}});
  EXPECT_EQ(ran.finding("worker")["state"], "problem");
}

TEST_F(Doctor, SaysHowManyWorkersThereMayBeAndWhetherHeadersArePrecompiled) {
  const Ran on = run({"doctor", "--json"}, {{"KILN_JOBS", "7"}, {"KILN_PCH", "on"}});
  EXPECT_NE(on.finding("worker")["text"].get<std::string>().find("at most 7"), std::string::npos);
  EXPECT_EQ(on.finding("headers")["state"], "good");
  EXPECT_NE(on.finding("headers")["text"].get<std::string>().find("parsed once"), std::string::npos);
  const Ran off = run({"doctor", "--json"}, {{"KILN_JOBS", "0"}, {"KILN_PCH", "off"}});
  EXPECT_NE(off.finding("worker")["text"].get<std::string>().find("jobs = 0"), std::string::npos);
  EXPECT_EQ(off.finding("headers")["state"], "note");
  EXPECT_NE(off.finding("headers")["text"].get<std::string>().find("pch = off"), std::string::npos);
}

TEST_F(Doctor, WritesForPeopleToo) {
  const Ran ran = run({"doctor"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_NE(ran.out.find("NVIDIA driver:"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find('\033'), std::string::npos) << "no colours in a pipe";
}

}  // namespace
}  // namespace kiln::test
