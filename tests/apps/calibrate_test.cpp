// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <string>

#include "apps/run_kiln.hpp"
#include "support/fixtures/files.hpp"

namespace kiln::test {
namespace {

class CalibrateCommand : public KilnProgram {
 protected:
  Ran calibrate(const std::string& mode, std::vector<std::string> options = {}) {
    options.insert(options.begin(), "calibrate");
    for (const char* more : {"--quick", "--", KILN_CALIBRATED_MAIN}) options.emplace_back(more);
    options.push_back(mode);
    return run(options, {{"KILN_EXECUTION_MODE", "cpu"}, {"KILN_ALLOW_CPU_DEVICE", allowed_}});
  }
  Ran decide(const std::string& rows) {
    return run_program({KILN_CALIBRATED_MAIN, "decide", rows}, {{"KILN_ALLOW_CPU_DEVICE", allowed_}});
  }
  std::string kept() const { return path("home/.config/kiln/calibration.json"); }

  std::string allowed_ = "1";  // the device is PoCL's
};

TEST_F(CalibrateCommand, FindsCrossoverThatAutoUses) {
  const Ran ran = calibrate("answer");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("fake.large: opencl at "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("fake.small: opencl is never faster"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("1,000,000 "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("longest stages, opencl, 1,000,000 rows: wait "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find(kept()), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("this is for people"), std::string::npos) << "standard output is reserved for kiln";
  EXPECT_TRUE(ran.says("this is for people"));

  const Ran shown = run({"calibrate", "--show", "--json"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const auto operations = shown.json()["calibration"]["operations"];
  ASSERT_EQ(operations.size(), 2U) << shown.out;
  const auto large = operations[0];
  EXPECT_GT(large["crossovers"]["opencl"], 100);
  EXPECT_LE(large["crossovers"]["opencl"], 10'000);
  EXPECT_TRUE(operations[1]["crossovers"]["opencl"].is_null());
  ASSERT_EQ(large["evidence"]["cpu"].size(), 4U);
  EXPECT_GE(large["evidence"]["cpu"][3]["median_ms"], 100);
  EXPECT_GE(large["evidence"]["opencl"][3]["runs"], 5);
  EXPECT_EQ(large["longest"]["opencl"][0]["stage"], "wait");

  const Ran few = decide("50");
  EXPECT_EQ(few.exit_code, 11) << few.out;
  EXPECT_NE(few.out.find("measured"), std::string::npos) << few.out;
  const Ran many = decide("20000");
  EXPECT_EQ(many.exit_code, 10) << many.out;
  EXPECT_NE(many.out.find("measured"), std::string::npos) << many.out;
  allowed_ = "0";
  const Ran refused = decide("20000");
  EXPECT_EQ(refused.exit_code, 11) << refused.out;
  EXPECT_NE(refused.out.find("KILN_ALLOW_CPU_DEVICE=1"), std::string::npos) << refused.out;
}

TEST_F(CalibrateCommand, LeavesOutCpuDeviceWithoutPermission) {
  allowed_ = "0";
  const Ran ran = calibrate("answer");
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("fake.large: no device on this machine: cpu"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("note: opencl was not measured: its device is a CPU"), std::string::npos) << ran.out;
}

TEST_F(CalibrateCommand, PreservesOtherOperations) {
  const std::string file = path("mine.json");
  ASSERT_EQ(calibrate("answer", {"--file", file}).exit_code, 0);
  std::string text = read_text(file);
  text.replace(text.find("fake.small"), 10, "fake.other");
  write_text(file, text);
  const Ran ran = calibrate("answer", {"--file", file, "--json"});
  ASSERT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.json()["file"], file);
  EXPECT_EQ(ran.json()["calibration"]["operations"].size(), 2U);
  const Ran shown = run({"calibrate", "--show", "--json", "--file", file});
  EXPECT_EQ(shown.json()["calibration"]["operations"].size(), 3U) << shown.out;
  EXPECT_FALSE(std::filesystem::exists(kept()));
}

TEST_F(CalibrateCommand, ReportsNextStepIfProgramDoesNotCalibrate) {
  const Ran silent = calibrate("silent");
  EXPECT_EQ(silent.exit_code, 1);
  EXPECT_TRUE(silent.says("without measuring anything")) << silent.err;
  EXPECT_TRUE(silent.says("calibration_asked_for")) << silent.err;
  const Ran failed = calibrate("fail");
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_TRUE(failed.says("returned 7")) << failed.err;
  const Ran crashed = calibrate("crash");
  EXPECT_EQ(crashed.exit_code, 1);
  EXPECT_TRUE(crashed.says("signal 6")) << crashed.err;
  const Ran nonsense = calibrate("nonsense");
  EXPECT_EQ(nonsense.exit_code, 1);
  EXPECT_TRUE(nonsense.says("not a calibration")) << nonsense.err;
  EXPECT_FALSE(std::filesystem::exists(kept()));
}

TEST_F(CalibrateCommand, ReportsMissingArguments) {
  const Ran none = run({"calibrate"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(none.says("kiln calibrate -- PROGRAM")) << none.err;
  const Ran nowhere = run({"calibrate", "--", "no-such-program"});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_TRUE(nowhere.says("cannot find the program 'no-such-program'")) << nowhere.err;
  const Ran nothing = run({"calibrate", "--show"});
  EXPECT_EQ(nothing.exit_code, 1);
  EXPECT_TRUE(nothing.says("no calibration at " + kept())) << nothing.err;
  const Ran homeless = run({"calibrate", "--show"}, {{"HOME", ""}});
  EXPECT_EQ(homeless.exit_code, 2);
  EXPECT_TRUE(homeless.says("--file")) << homeless.err;
}

TEST_F(CalibrateCommand, RejectsUnrelatedFileBeforeMeasuring) {
  const std::string file = write("letters.json", "{\"dear\": \"you\"}");
  const Ran ran = calibrate("answer", {"--file", file});
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_TRUE(ran.says("not a calibration")) << ran.err;
  EXPECT_FALSE(ran.says("this is for people")) << "the program must not run";
  EXPECT_EQ(read_text(file), "{\"dear\": \"you\"}");
}

}  // namespace
}  // namespace kiln::test
