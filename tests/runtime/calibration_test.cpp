// The calibration file: what is written is read, what is hostile, damaged or of another time is refused in words.
#include <kiln/runtime/calibration.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "runtime/calibration_limits.hpp"
#include "runtime/crossover.hpp"
#include "runtime/measured.hpp"
#include "support/event_log.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::runtime {
namespace {

constexpr auto kJoin = operation<void()>("a.join", PrecisionClass::Coarse, Implementation<void()>{{}, nullptr});

Crossovers some_crossovers(const std::string& name) {
  Crossovers out;
  out.operation = name;
  out.date = "2026-11-15T18:20:00Z";
  out.rows = {{Backend::OpenCl, 4'321}, {Backend::Cuda, kNever}};
  out.evidence[Backend::Cpu] = {{1, 0.5, 0.1, 7}, {1'000'000, 12.25, 0, 5}};
  out.evidence[Backend::OpenCl] = {{1, 2.5, 0.2, 7}};
  out.longest[Backend::OpenCl] = {{"a.join", "refine", "opencl", 7.5}, {"a.join", "sort", "opencl", 2}};
  out.notes = {"opencl was left at 10 rows"};
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

Error refusal_of(const std::string& text) {
  const Result<Calibration> parsed = Calibration::parse(text);
  EXPECT_FALSE(parsed.ok()) << text.substr(0, 200);
  return parsed.ok() ? Error{} : parsed.error();
}

TEST(CalibrationFile, SaysWhatWasWritten) {
  const Calibration written = some_calibration();
  const Result<Calibration> read = Calibration::parse(written.text());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->text(), written.text());
  EXPECT_EQ(read->machine.processor, "A processor, 2 cores");
  EXPECT_EQ(read->machine.devices.at(Backend::OpenCl), "a device");
  EXPECT_EQ(read->crossover("a.join", Backend::OpenCl), 4'321u);
  EXPECT_EQ(read->crossover("a.join", Backend::Cuda), kNever);
  EXPECT_EQ(read->crossover("a.join", Backend::Cpu), std::nullopt);
  EXPECT_EQ(read->crossover("another", Backend::OpenCl), std::nullopt);
  const Crossovers& join = *read->find("a.join");
  EXPECT_EQ(join.evidence.at(Backend::Cpu).at(1).rows, 1'000'000u);
  EXPECT_EQ(join.evidence.at(Backend::Cpu).at(1).median_ms, 12.25);
  EXPECT_EQ(join.evidence.at(Backend::OpenCl).at(0).runs, 7u);
  EXPECT_EQ(join.longest.at(Backend::OpenCl).at(0).stage, "refine");
  EXPECT_EQ(join.longest.at(Backend::OpenCl).at(0).ms, 7.5);
  EXPECT_EQ(join.notes, std::vector<std::string>{"opencl was left at 10 rows"});
}

TEST(CalibrationFile, OfAnOlderOrNewerVersionIsRefusedByName) {
  for (const std::string version : {"0", "2", "17"}) {
    const Error error = refusal_of(replaced(some_calibration().text(), "calibration 1", "calibration " + version));
    EXPECT_EQ(error.code, Code::Unsupported);
    EXPECT_NE(error.message.find("version " + version + ","), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("kiln calibrate"), std::string::npos) << error.message;
  }
}

TEST(CalibrationFile, PassesOverMembersThatItDoesNotKnow) {
  const std::string text =
      replaced(some_calibration().text(), "\"machine\": {", "\"later\": [1], \"machine\": {\"x\": 1,");
  EXPECT_TRUE(Calibration::parse(text).ok());
}

TEST(CalibrationFile, ThatIsNoneIsRefusedWithTheReason) {
  const std::string good = some_calibration().text();
  for (const std::string& text : std::vector<std::string>{
           "", "{", "[]", "7", "{}", R"({"kiln": "profile 1"})", R"({"kiln": 1})", good.substr(0, good.size() / 2),
           replaced(good, "A processor, 2 cores", ""), replaced(good, "4321", "-1"), replaced(good, "4321", "1.5"),
           replaced(good, "4321", "\"many\""), replaced(good, "0.5", "-0.5"), replaced(good, "0.5", "1e999"),
           replaced(good, "\"runs\": 7", "\"runs\": 99999999999999"), replaced(good, "a.join", "a.b"),
           replaced(good, "a.join", ""), replaced(good, "a.join", std::string(kLongestName + 1, 'a')),
           replaced(good, "\"refine\"", "[]")}) {
    EXPECT_EQ(refusal_of(text).code, Code::Corrupt) << text.substr(0, 300);
  }
}

TEST(CalibrationFile, HasBounds) {
  EXPECT_NE(refusal_of(std::string(kLargestCalibration + 1, ' ')).message.find("1 MiB"), std::string::npos);
  EXPECT_NE(refusal_of(std::string(1000, '[')).message.find("nested"), std::string::npos);
  Calibration large = some_calibration();
  large.operations[0].evidence[Backend::Cpu].resize(kMostTimings + 1);
  EXPECT_EQ(refusal_of(large.text()).code, Code::Corrupt);
  large = some_calibration();
  for (std::size_t more = 0; more < kMostOperations; ++more) {
    large.operations.push_back({"operation " + std::to_string(more), {}, {}, {}, {}, {}});
  }
  EXPECT_EQ(refusal_of(large.text()).code, Code::Corrupt);
}

class CalibrationOnDisk : public testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/new/calibration.json"; }
  test::TemporaryDirectory folder_;
};

TEST_F(CalibrationOnDisk, IsNothingWhereThereIsNoFile) {
  const auto read = Calibration::read(path());
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->has_value());
}

TEST_F(CalibrationOnDisk, KeepsOtherOperationsOfTheSameMachine) {
  ASSERT_TRUE(some_calibration().write(path()).ok());
  Calibration newer{{"A processor, 2 cores", {{Backend::Cuda, "another"}}}, {some_crossovers("a.b")}};
  newer.operations[0].rows[Backend::OpenCl] = 5;
  ASSERT_TRUE(newer.write(path()).ok());
  const auto read = Calibration::read(path());
  ASSERT_TRUE(read.ok() && read->has_value());
  EXPECT_EQ((*read)->operations.size(), 2u);
  EXPECT_EQ((*read)->crossover("a.join", Backend::OpenCl), 4'321u);
  EXPECT_EQ((*read)->crossover("a.b", Backend::OpenCl), 5u);
  EXPECT_EQ((*read)->machine.devices.size(), 2u);
}

TEST_F(CalibrationOnDisk, OfAnotherMachineIsReplaced) {
  ASSERT_TRUE(some_calibration().write(path()).ok());
  for (const Machine& other :
       {Machine{"A processor, 4 cores", {}}, Machine{"A processor, 4 cores", {{Backend::OpenCl, "a newer device"}}},
        Machine{"A processor, 4 cores", {{Backend::OpenCl, "the newest"}}}}) {
    ASSERT_TRUE((Calibration{other, {some_crossovers("c")}}).write(path()).ok());
  }
  const auto read = Calibration::read(path());
  ASSERT_TRUE(read.ok() && read->has_value());
  EXPECT_EQ((*read)->operations.size(), 1u);
  EXPECT_EQ((*read)->machine.devices.at(Backend::OpenCl), "the newest");
}

TEST_F(CalibrationOnDisk, DoesNotOverwriteWhatIsNoCalibration) {
  const std::string file = folder_.path() + "/letters.json";
  test::spit(file, "{\"dear\": \"you\"}");
  const Status status = some_calibration().write(file);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("left as it is"), std::string::npos) << status.error().message;
  EXPECT_EQ(test::slurp(file), "{\"dear\": \"you\"}");
  EXPECT_FALSE(some_calibration().write(folder_.path()).ok());
  EXPECT_FALSE(some_calibration().write("").ok());
}

TEST_F(CalibrationOnDisk, IsInForceOnItsOwnMachineAlone) {
  test::EventLog log;
  Calibration here{this_processor(), {some_crossovers("a.join")}};
  here.machine.devices[Backend::OpenCl] = "a device";
  ASSERT_TRUE(here.write(path()).ok());
  const Measured mine = Measured::load(path(), log.callback());
  EXPECT_EQ(mine.crossover(kJoin, Backend::OpenCl), 4'321u);
  EXPECT_TRUE(mine.is_of(Backend::OpenCl, "a device"));
  EXPECT_FALSE(mine.is_of(Backend::OpenCl, "another device"));
  EXPECT_FALSE(mine.is_of(Backend::Cuda, "a device"));
  EXPECT_EQ(log.count(Event::Kind::Configuration), 0u);

  ASSERT_TRUE(some_calibration().write(path()).ok());
  const Measured others = Measured::load(path(), log.callback());
  EXPECT_EQ(others.crossover(kJoin, Backend::OpenCl), std::nullopt);
  EXPECT_EQ(log.count(Event::Kind::Configuration), 1u);
  EXPECT_NE(log.of(Event::Kind::Configuration).at(0).message.find("another machine"), std::string::npos);

  test::spit(path(), "nonsense");
  EXPECT_EQ(Measured::load(path(), log.callback()).crossover(kJoin, Backend::OpenCl), std::nullopt);
  EXPECT_EQ(log.count(Event::Kind::Configuration), 2u);
  EXPECT_EQ(Measured::load(folder_.path() + "/none", log.callback()).crossover(kJoin, Backend::OpenCl), std::nullopt);
  EXPECT_EQ(log.count(Event::Kind::Configuration), 2u);
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

TEST_F(CalibrationPlace, IsTheProgramsThenTheEnvironmentsThenTheUsers) {
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

TEST_F(CalibrationPlace, IsAskedForByAVariable) {
  EXPECT_FALSE(calibration_asked_for());
  setenv("KILN_CALIBRATE", "/result.json", 1);
  ASSERT_TRUE(calibration_asked_for());
  EXPECT_EQ(calibration_asked_for()->path, "/result.json");
  EXPECT_EQ(calibration_asked_for()->options.sizes.size(), CalibrationOptions().sizes.size());
  setenv("KILN_CALIBRATE_QUICK", "1", 1);
  EXPECT_LT(calibration_asked_for()->options.sizes.size(), CalibrationOptions().sizes.size());
}

std::vector<Timing> timings(const std::vector<std::pair<std::uint64_t, double>>& times) {
  std::vector<Timing> out;
  for (const auto& [rows, ms] : times) out.push_back({rows, ms, 0, 5});
  return out;
}

TEST(Crossing, LiesWhereTheLinesMeet) {
  const auto cpu = timings({{1, 0.001}, {100, 0.1}, {10'000, 10}, {1'000'000, 1000}});
  const auto device = timings({{1, 1}, {100, 1}, {10'000, 1}, {1'000'000, 100}});
  const Crossing crossing = find_crossing(cpu, device);
  EXPECT_EQ(crossing.below, 100u);
  EXPECT_EQ(crossing.above, 10'000u);
  EXPECT_NEAR(static_cast<double>(crossing.rows), 1000, 2);
  EXPECT_EQ(crossing.regret, 1);
}

TEST(Crossing, IsNeverWhereTheProcessorAlwaysWins) {
  EXPECT_EQ(find_crossing(timings({{1, 1}, {10, 1}}), timings({{1, 2}, {10, 1.5}})).rows, kNever);
  EXPECT_EQ(find_crossing({}, {}).rows, kNever);
}

TEST(Crossing, IsTheSmallestSizeWhereTheDeviceAlwaysWins) {
  EXPECT_EQ(find_crossing(timings({{1, 2}, {10, 2}}), timings({{1, 1}, {10, 1}})).rows, 1u);
}

TEST(Crossing, DoesNotLoseALargeGainToNoiseAtTheEnd) {
  // At the largest size the device was a hundredth slower: that must not cost the factor of two before it.
  const auto cpu = timings({{10, 1}, {100, 2}, {1'000, 20}, {10'000, 100}});
  const auto device = timings({{10, 10}, {100, 10}, {1'000, 10}, {10'000, 101}});
  const Crossing crossing = find_crossing(cpu, device);
  EXPECT_GT(crossing.rows, 100u);
  EXPECT_LE(crossing.rows, 1'000u);
  EXPECT_NEAR(crossing.regret, 1.01, 1e-9);
}

TEST(Crossing, CountsASizeThatOneSideWasNotTimedAtAsTheOthers) {
  EXPECT_EQ(find_crossing(timings({{1, 1}, {10, 1}, {100, 1}}), timings({{1, 2}, {10, 0.9}})).rows, kNever);
  EXPECT_LE(find_crossing(timings({{1, 1}, {10, 5}}), timings({{1, 2}, {10, 2}, {100, 3}})).rows, 10u);
}

}  // namespace
}  // namespace kiln::runtime
