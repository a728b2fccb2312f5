// SPDX-License-Identifier: Apache-2.0
// The calibration file: round trip, and rejection of hostile, corrupt or unsupported files with a clear message.
#include <kiln/runtime/calibration.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "runtime/calibration/calibration_limits.hpp"
#include "runtime/calibration/crossover.hpp"
#include "runtime/calibration/loaded_calibration.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/exact_variant.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::runtime {
namespace {

constexpr auto kJoin = operation<void()>("a.join", PrecisionClass::Coarse,
                                         Implementation<void()>{test::exact_variant(Backend::Cpu), nullptr});

OperationCalibration some_crossovers(const std::string& name) {
  OperationCalibration out;
  out.operation = name;
  out.date = "2026-11-15T18:20:00Z";
  out.thresholds = {{Backend::OpenCl, 4'321}, {Backend::Cuda, kNoCrossover}};
  out.timings[Backend::Cpu] = {{1, 0.5, 0.1, 7}, {1'000'000, 12.25, 0, 5}};
  out.timings[Backend::OpenCl] = {{1, 2.5, 0.2, 7}};
  out.longest_stages[Backend::OpenCl] = {{"a.join", "refine", "opencl", 7.5}, {"a.join", "sort", "opencl", 2}};
  out.notes = {"opencl was dropped at 10 rows"};
  return out;
}

Calibration some_calibration() {
  return {{"A processor, 2 cores", {{Backend::OpenCl, "a device"}}},
          {some_crossovers("a.join"), some_crossovers("a.b")}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

Error rejection_of(const std::string& text) {
  const Result<Calibration> parsed = Calibration::parse(text);
  EXPECT_FALSE(parsed.has_value()) << text.substr(0, 200);
  return parsed.has_value() ? Error{} : parsed.error();
}

TEST(CalibrationFile, RoundTrips) {
  const Calibration written = some_calibration();
  const Result<Calibration> read = Calibration::parse(written.text());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->text(), written.text());
  EXPECT_EQ(read->machine.processor, "A processor, 2 cores");
  EXPECT_EQ(read->machine.devices.at(Backend::OpenCl), "a device");
  EXPECT_EQ(read->crossover("a.join", Backend::OpenCl), 4'321u);
  EXPECT_EQ(read->crossover("a.join", Backend::Cuda), kNoCrossover);
  EXPECT_EQ(read->crossover("a.join", Backend::Cpu), std::nullopt);
  EXPECT_EQ(read->crossover("another", Backend::OpenCl), std::nullopt);
  const OperationCalibration& join = *read->find("a.join");
  EXPECT_EQ(join.timings.at(Backend::Cpu).at(1).rows, 1'000'000u);
  EXPECT_EQ(join.timings.at(Backend::Cpu).at(1).median_ms, 12.25);
  EXPECT_EQ(join.timings.at(Backend::OpenCl).at(0).runs, 7u);
  EXPECT_EQ(join.longest_stages.at(Backend::OpenCl).at(0).stage, "refine");
  EXPECT_EQ(join.longest_stages.at(Backend::OpenCl).at(0).ms, 7.5);
  EXPECT_EQ(join.notes, std::vector<std::string>{"opencl was dropped at 10 rows"});
}

TEST(CalibrationFile, RejectsOtherVersionsByName) {
  for (const std::string version : {"0", "2", "17"}) {
    const Error error = rejection_of(replaced(some_calibration().text(), "calibration 1", "calibration " + version));
    EXPECT_EQ(error.code, Code::Unsupported);
    EXPECT_NE(error.message.find("version " + version + ":"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("kiln calibrate"), std::string::npos) << error.message;
  }
}

TEST(CalibrationFile, IgnoresUnknownMembers) {
  const std::string text =
      replaced(some_calibration().text(), "\"machine\": {", "\"later\": [1], \"machine\": {\"x\": 1,");
  EXPECT_TRUE(Calibration::parse(text).has_value());
}

TEST(CalibrationFile, RejectsInvalidFilesWithReason) {
  const std::string good = some_calibration().text();
  for (const std::string& text : std::vector<std::string>{
           "", "{", "[]", "7", "{}", R"({"kiln": "profile 1"})", R"({"kiln": 1})", good.substr(0, good.size() / 2),
           replaced(good, "A processor, 2 cores", ""), replaced(good, "4321", "-1"), replaced(good, "4321", "1.5"),
           replaced(good, "4321", "\"many\""), replaced(good, "0.5", "-0.5"), replaced(good, "0.5", "1e999"),
           replaced(good, "\"runs\": 7", "\"runs\": 99999999999999"), replaced(good, "a.join", "a.b"),
           replaced(good, "a.join", ""), replaced(good, "a.join", std::string(kMaxNameLength + 1, 'a')),
           replaced(good, "\"refine\"", "[]")}) {
    EXPECT_EQ(rejection_of(text).code, Code::Corrupt) << text.substr(0, 300);
  }
}

TEST(CalibrationFile, EnforcesLimits) {
  EXPECT_NE(rejection_of(std::string(kMaxCalibrationBytes + 1, ' ')).message.find("1 MiB"), std::string::npos);
  EXPECT_NE(rejection_of(std::string(1000, '[')).message.find("nested"), std::string::npos);
  Calibration large = some_calibration();
  large.operations[0].timings[Backend::Cpu].resize(kMaxTimings + 1);
  EXPECT_EQ(rejection_of(large.text()).code, Code::Corrupt);
  large = some_calibration();
  for (std::size_t more = 0; more < kMaxOperations; ++more) {
    large.operations.push_back({"operation " + std::to_string(more), {}, {}, {}, {}, {}});
  }
  EXPECT_EQ(rejection_of(large.text()).code, Code::Corrupt);
}

class CalibrationOnDisk : public testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/new/calibration.json"; }
  test::TemporaryDirectory directory_;
};

TEST_F(CalibrationOnDisk, MissingFileIsEmpty) {
  const auto read = Calibration::read(path());
  ASSERT_TRUE(read.has_value());
  EXPECT_FALSE(read->has_value());
}

TEST_F(CalibrationOnDisk, MergesOperationsOfSameMachine) {
  ASSERT_TRUE(some_calibration().write(path()).has_value());
  Calibration newer{{"A processor, 2 cores", {{Backend::Cuda, "another"}}}, {some_crossovers("a.b")}};
  newer.operations[0].thresholds[Backend::OpenCl] = 5;
  ASSERT_TRUE(newer.write(path()).has_value());
  const auto read = Calibration::read(path());
  ASSERT_TRUE(read.has_value() && read->has_value());
  EXPECT_EQ((*read)->operations.size(), 2u);
  EXPECT_EQ((*read)->crossover("a.join", Backend::OpenCl), 4'321u);
  EXPECT_EQ((*read)->crossover("a.b", Backend::OpenCl), 5u);
  EXPECT_EQ((*read)->machine.devices.size(), 2u);
}

TEST_F(CalibrationOnDisk, ReplacesCalibrationOfAnotherMachine) {
  ASSERT_TRUE(some_calibration().write(path()).has_value());
  for (const Machine& other :
       {Machine{"A processor, 4 cores", {}}, Machine{"A processor, 4 cores", {{Backend::OpenCl, "a newer device"}}},
        Machine{"A processor, 4 cores", {{Backend::OpenCl, "the newest"}}}}) {
    ASSERT_TRUE((Calibration{other, {some_crossovers("c")}}).write(path()).has_value());
  }
  const auto read = Calibration::read(path());
  ASSERT_TRUE(read.has_value() && read->has_value());
  EXPECT_EQ((*read)->operations.size(), 1u);
  EXPECT_EQ((*read)->machine.devices.at(Backend::OpenCl), "the newest");
}

TEST_F(CalibrationOnDisk, DoesNotOverwriteUnrelatedFile) {
  const std::string file = directory_.path() + "/letters.json";
  test::write_text(file, "{\"dear\": \"you\"}");
  const Status status = some_calibration().write(file);
  ASSERT_FALSE(status.has_value());
  EXPECT_NE(status.error().message.find("was not changed"), std::string::npos) << status.error().message;
  EXPECT_EQ(test::read_text(file), "{\"dear\": \"you\"}");
  EXPECT_FALSE(some_calibration().write(directory_.path()).has_value());
  EXPECT_FALSE(some_calibration().write("").has_value());
}

TEST_F(CalibrationOnDisk, AppliesOnlyToItsMachine) {
  test::EventLog log;
  Calibration here{this_processor(), {some_crossovers("a.join")}};
  here.machine.devices[Backend::OpenCl] = "a device";
  ASSERT_TRUE(here.write(path()).has_value());
  const LoadedCalibration mine = LoadedCalibration::load(path(), log.callback());
  EXPECT_EQ(mine.crossover(kJoin, Backend::OpenCl), 4'321u);
  EXPECT_TRUE(mine.matches_device(Backend::OpenCl, "a device"));
  EXPECT_FALSE(mine.matches_device(Backend::OpenCl, "another device"));
  EXPECT_FALSE(mine.matches_device(Backend::Cuda, "a device"));
  EXPECT_EQ(log.count(Event::Kind::ConfigWarning), 0u);

  ASSERT_TRUE(some_calibration().write(path()).has_value());
  const LoadedCalibration others = LoadedCalibration::load(path(), log.callback());
  EXPECT_EQ(others.crossover(kJoin, Backend::OpenCl), std::nullopt);
  EXPECT_EQ(log.count(Event::Kind::ConfigWarning), 1u);
  EXPECT_NE(log.of(Event::Kind::ConfigWarning).at(0).message.find("another machine"), std::string::npos);

  test::write_text(path(), "nonsense");
  EXPECT_EQ(LoadedCalibration::load(path(), log.callback()).crossover(kJoin, Backend::OpenCl), std::nullopt);
  EXPECT_EQ(log.count(Event::Kind::ConfigWarning), 2u);
  EXPECT_EQ(LoadedCalibration::load(directory_.path() + "/none", log.callback()).crossover(kJoin, Backend::OpenCl),
            std::nullopt);
  EXPECT_EQ(log.count(Event::Kind::ConfigWarning), 2u);
}

class CalibrationPlace : public testing::Test {
 protected:
  void SetUp() override { TearDown(); }
  void TearDown() override {
    for (const char* name : {"KILN_CALIBRATION", "XDG_CONFIG_HOME", "KILN_CALIBRATE", "KILN_CALIBRATE_QUICK"}) {
      unsetenv(name);
    }
    setenv("HOME", home_.c_str(), 1);
  }
  const std::string home_ = getenv("HOME") == nullptr ? "/" : getenv("HOME");
};

TEST_F(CalibrationPlace, PathPrecedenceIsProgramEnvironmentUser) {
  setenv("HOME", "/home/a", 1);
  EXPECT_EQ(calibration_path({}), "/home/a/.config/kiln/calibration.json");
  setenv("XDG_CONFIG_HOME", "/config", 1);
  EXPECT_EQ(calibration_path({}), "/config/kiln/calibration.json");
  setenv("KILN_CALIBRATION", "/mine.json", 1);
  EXPECT_EQ(calibration_path({}), "/mine.json");
  RuntimeOptions options;
  options.calibration = "/programs.json";
  EXPECT_EQ(calibration_path(options), "/programs.json");
}

TEST_F(CalibrationPlace, CalibrationIsRequestedByVariable) {
  EXPECT_FALSE(requested_calibration());
  setenv("KILN_CALIBRATE", "/result.json", 1);
  ASSERT_TRUE(requested_calibration());
  EXPECT_EQ(requested_calibration()->path, "/result.json");
  EXPECT_EQ(requested_calibration()->options.sizes.size(), CalibrationOptions().sizes.size());
  setenv("KILN_CALIBRATE_QUICK", "1", 1);
  EXPECT_LT(requested_calibration()->options.sizes.size(), CalibrationOptions().sizes.size());
}

std::vector<Timing> timings(const std::vector<std::pair<std::uint64_t, double>>& times) {
  std::vector<Timing> out;
  for (const auto& [rows, ms] : times) out.push_back({rows, ms, 0, 5});
  return out;
}

TEST(Crossing, IsInterpolated) {
  const auto cpu = timings({{1, 0.001}, {100, 0.1}, {10'000, 10}, {1'000'000, 1000}});
  const auto device = timings({{1, 1}, {100, 1}, {10'000, 1}, {1'000'000, 100}});
  const CrossoverFit crossing = find_crossing(cpu, device);
  EXPECT_EQ(crossing.lower_size, 100u);
  EXPECT_EQ(crossing.upper_size, 10'000u);
  EXPECT_NEAR(static_cast<double>(crossing.rows), 1000, 2);
}

TEST(Crossing, IsNeverIfCpuAlwaysWins) {
  EXPECT_EQ(find_crossing(timings({{1, 1}, {10, 1}}), timings({{1, 2}, {10, 1.5}})).rows, kNoCrossover);
  EXPECT_EQ(find_crossing({}, {}).rows, kNoCrossover);
}

TEST(Crossing, IsSmallestSizeIfDeviceAlwaysWins) {
  EXPECT_EQ(find_crossing(timings({{1, 2}, {10, 2}}), timings({{1, 1}, {10, 1}})).rows, 1u);
}

TEST(Crossing, IgnoresNoiseAtLargestSize) {
  // The device is 1 % slower at the largest size, which must not outweigh the factor of two before.
  const auto cpu = timings({{10, 1}, {100, 2}, {1'000, 20}, {10'000, 100}});
  const auto device = timings({{10, 10}, {100, 10}, {1'000, 10}, {10'000, 101}});
  const CrossoverFit crossing = find_crossing(cpu, device);
  EXPECT_GT(crossing.rows, 100u);
  EXPECT_LE(crossing.rows, 1'000u);
}

TEST(Crossing, SizeTimedOnOneBackendCountsForIt) {
  EXPECT_EQ(find_crossing(timings({{1, 1}, {10, 1}, {100, 1}}), timings({{1, 2}, {10, 0.9}})).rows, kNoCrossover);
  EXPECT_LE(find_crossing(timings({{1, 1}, {10, 5}}), timings({{1, 2}, {10, 2}, {100, 3}})).rows, 10u);
}

}  // namespace
}  // namespace kiln::runtime
