// SPDX-License-Identifier: Apache-2.0
// Calibration with a clock that the operations under test advance, on the PoCL device, and the use of the result by
// mode auto.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <kiln/runtime.hpp>

#include "base/error.hpp"
#include "runtime/calibration/calibrate.hpp"
#include "support/fakes/manual_clock.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/exact_variant.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/scoped_env.hpp"

namespace kiln::runtime {
namespace {

constexpr auto kTimed = operation<void()>("test.timed", PrecisionClass::Coarse,
                                          Implementation<void()>{test::exact_variant(Backend::Cpu), nullptr},
                                          Implementation<void()>{test::exact_variant(Backend::OpenCl), nullptr});

class Calibrate : public testing::Test {
 protected:
  void SetUp() override {
    options_.refinements = 0;
    calibration_case_.operation = &kTimed;
    calibration_case_.prepare = [this](std::uint64_t rows) {
      rows_ = rows;
      prepared_.push_back(rows);
      return Status();
    };
    calibration_case_.run = [this](Runtime& side) -> Status {
      const bool cpu = side.mode() == Mode::Cpu;
      EXPECT_EQ(side.options().devices.size(), cpu ? 0u : 1u) << "the runtime allows only the backend under test";
      sides_ += cpu ? 'c' : 'd';
      clock_.advance(std::chrono::nanoseconds(static_cast<std::int64_t>((cpu ? cpu_ms_ : device_ms_)(rows_)*1e6)));
      if (rows_ >= (cpu ? cpu_fails_ : device_fails_)) return make_error(Code::Internal, "no memory");
      return {};
    };
  }

  Result<Calibration> calibrated() { return calibrate_by(clock_, runtime_, {calibration_case_}, options_); }
  OperationCalibration measured() {
    const Result<Calibration> calibration = calibrated();
    EXPECT_TRUE(calibration.has_value()) << (calibration ? "" : calibration.error().message);
    return calibration ? calibration->operations.at(0) : OperationCalibration();
  }

  test::TemporaryDirectory directory_;
  test::EventLog log_;
  Session session_ = Session::open({{{"cache.dir", directory_.path("cache")}}, {}, log_.callback()}).value();
  const test::ScopedEnv allow_cpu_device_{"KILN_ALLOW_CPU_DEVICE", "1"};  // the OpenCL device of the tests is PoCL's
  Runtime runtime_{session_};
  test::ManualClock clock_;
  std::function<double(std::uint64_t)> cpu_ms_ = [](std::uint64_t rows) { return 0.1 * static_cast<double>(rows); };
  std::function<double(std::uint64_t)> device_ms_ = [](std::uint64_t rows) {
    return 100 + 0.01 * static_cast<double>(rows);
  };
  std::uint64_t cpu_fails_ = kNoCrossover;
  std::uint64_t device_fails_ = kNoCrossover;
  std::uint64_t rows_ = 0;
  std::vector<std::uint64_t> prepared_;
  std::string sides_;
  CalibrationCase calibration_case_;
  CalibrationOptions options_;
};

TEST_F(Calibrate, FindsCrossover) {
  options_.refinements = 2;
  const OperationCalibration found = measured();  // the crossover is at 1,111 rows
  EXPECT_GT(found.thresholds.at(Backend::OpenCl), 1'000u);
  EXPECT_LT(found.thresholds.at(Backend::OpenCl), 1'250u);
  const auto& cpu = found.timings.at(Backend::Cpu);
  const auto& device = found.timings.at(Backend::OpenCl);
  ASSERT_EQ(cpu.size(), options_.sizes.size() + 2) << "two refinements around the crossover";
  EXPECT_EQ(device.size(), cpu.size());
  EXPECT_TRUE(std::is_sorted(cpu.begin(), cpu.end(), [](auto& a, auto& b) { return a.rows < b.rows; }));
  EXPECT_EQ(cpu.back().rows, 1'000'000u);
  EXPECT_NEAR(cpu.back().median_ms, 100'000, 1'000);
  EXPECT_NEAR(device.front().median_ms, 100, 10);
  EXPECT_EQ(found.operation, "test.timed");
  EXPECT_EQ(found.date.substr(0, 2), "20");
  EXPECT_TRUE(found.notes.empty());
}

TEST_F(Calibrate, RecordsMachine) {
  const Result<Calibration> calibration = calibrated();
  ASSERT_TRUE(calibration.has_value());
  EXPECT_TRUE(calibration->machine.matches(this_processor()));
  EXPECT_EQ(calibration->machine.devices.count(Backend::OpenCl), 1u);
  EXPECT_FALSE(calibration->machine.devices.at(Backend::OpenCl).empty());
}

TEST_F(Calibrate, AlternatesBackends) {
  options_.sizes = {1};
  (void)measured();
  EXPECT_EQ(sides_.substr(0, 12), "cdcdcdcdcdcd") << "one warm-up run of each backend, then five";
}

TEST_F(Calibrate, ExcludesFirstRun) {
  options_.sizes = {1};
  unsigned runs = 0;
  device_ms_ = [&](std::uint64_t) { return runs++ == 0 ? 60'000.0 : 1.0; };
  cpu_ms_ = [](std::uint64_t) { return 10; };
  const OperationCalibration found = measured();
  EXPECT_NEAR(found.timings.at(Backend::OpenCl).at(0).median_ms, 1, 0.5);
  EXPECT_LT(found.timings.at(Backend::OpenCl).at(0).spread, 1);
  EXPECT_EQ(found.thresholds.at(Backend::OpenCl), 1u);
}

TEST_F(Calibrate, ReportsNoise) {
  options_.sizes = {1};
  unsigned runs = 0;
  cpu_ms_ = [&](std::uint64_t) { return std::vector<double>{80, 100, 120}[runs++ % 3]; };
  const OperationCalibration found = measured();
  EXPECT_GT(found.timings.at(Backend::Cpu).at(0).spread, 0.15);
  EXPECT_LT(found.timings.at(Backend::OpenCl).at(0).spread, 0.1);
  EXPECT_TRUE(found.notes.empty());
  cpu_ms_ = [&](std::uint64_t) { return std::vector<double>{10, 100, 500}[runs++ % 3]; };
  const OperationCalibration noisy = measured();
  ASSERT_EQ(noisy.notes.size(), 1u);
  EXPECT_NE(noisy.notes[0].find("busy"), std::string::npos) << noisy.notes[0];
}

TEST_F(Calibrate, DropsVerySlowBackendWithNote) {
  device_ms_ = [](std::uint64_t rows) { return 10.0 * static_cast<double>(rows); };
  const OperationCalibration found = measured();
  EXPECT_EQ(found.thresholds.at(Backend::OpenCl), kNoCrossover);
  EXPECT_LT(found.timings.at(Backend::OpenCl).size(), options_.sizes.size());
  EXPECT_EQ(found.timings.at(Backend::Cpu).size(), options_.sizes.size());
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("opencl was not measured above"), std::string::npos) << found.notes[0];
}

TEST_F(Calibrate, KeepsDeviceThatIsSlowOnlyForFewRows) {
  device_ms_ = [](std::uint64_t) {
    return 9'000;
  };  // 90,000 times slower for one row, eleven times faster for many rows
  const OperationCalibration found = measured();
  EXPECT_TRUE(found.notes.empty());
  EXPECT_NEAR(static_cast<double>(found.thresholds.at(Backend::OpenCl)), 90'000, 2'000);
}

TEST_F(Calibrate, ContinuesWithoutFailingDevice) {
  device_fails_ = 1'000;
  const OperationCalibration found = measured();
  EXPECT_EQ(found.thresholds.at(Backend::OpenCl), kNoCrossover);
  EXPECT_EQ(found.timings.at(Backend::OpenCl).size(), 3u);
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_NE(found.notes[0].find("no memory"), std::string::npos) << found.notes[0];
}

TEST_F(Calibrate, FailsIfCpuFails) {
  cpu_fails_ = 1'000;
  const Result<Calibration> calibration = calibrated();
  ASSERT_FALSE(calibration.has_value());
  EXPECT_EQ(calibration.error().message, "test.timed cannot be measured: no memory");
}

TEST_F(Calibrate, RejectsUnsortedSizes) {
  for (const std::vector<std::uint64_t>& sizes : {std::vector<std::uint64_t>{}, {2, 1}, {1, 1}}) {
    options_.sizes = sizes;
    EXPECT_EQ(calibrated().error().code, Code::InvalidArgument);
  }
  options_.sizes = {1};
  calibration_case_.operation = nullptr;
  EXPECT_EQ(calibrated().error().code, Code::InvalidArgument);
  EXPECT_TRUE(prepared_.empty());
}

// Use of a calibration by mode auto.
class Calibrated : public Calibrate {
 protected:
  Decision decided(const Machine& machine, std::uint64_t rows) {
    OperationCalibration crossovers;
    crossovers.operation = kTimed.name();
    crossovers.thresholds[Backend::OpenCl] = 50;
    EXPECT_TRUE((Calibration{machine, {crossovers}}).write(directory_.path("calibration.json")).has_value());
    RuntimeOptions options;
    options.mode = Mode::Auto;
    options.calibration = directory_.path("calibration.json");
    Runtime runtime(session_, options);
    DispatchRequest request;
    request.rows = rows;
    Result<Decision> decision = runtime.decide(kTimed, request);
    EXPECT_TRUE(decision.has_value());
    // Decide again with another number of rows and without cached decisions; the event is still emitted once.
    request.rows += 1;
    EXPECT_TRUE(runtime.decide(kTimed, request).has_value());
    runtime.set_mode(Mode::Auto);
    EXPECT_TRUE(runtime.decide(kTimed, request).has_value());
    return decision ? *decision : Decision();
  }
};

TEST_F(Calibrated, MeasuredCrossoverOverridesVariantCrossover) {
  const Machine here = this_machine(session_);
  const Decision few = decided(here, 20);
  EXPECT_EQ(few.selected, Backend::Cpu);  // the crossover of the variant is 0
  EXPECT_EQ(few.reason, Reason::BelowCrossover);
  EXPECT_TRUE(few.measured);
  EXPECT_EQ(few.crossover, 50u);
  const Decision many = decided(here, 60);
  EXPECT_EQ(many.selected, Backend::OpenCl);
  EXPECT_EQ(many.reason, Reason::AboveCrossover);
  EXPECT_TRUE(many.measured);
  EXPECT_EQ(log_.count(Event::Kind::ConfigWarning), 0u);
}

TEST_F(Calibrated, CalibrationOfAnotherMachineIsIgnoredWithOneEvent) {
  const Decision decision = decided({"Another processor, 1 core", {}}, 20);
  EXPECT_EQ(decision.selected, Backend::OpenCl);
  EXPECT_FALSE(decision.measured);
  ASSERT_EQ(log_.count(Event::Kind::ConfigWarning), 1u);
  EXPECT_NE(log_.of(Event::Kind::ConfigWarning)[0].message.find("Another processor"), std::string::npos);
}

TEST_F(Calibrated, CalibrationOfAnotherDeviceIsIgnoredWithOneEvent) {
  Machine machine = this_processor();
  machine.devices[Backend::OpenCl] = "another device";
  const Decision decision = decided(machine, 60);
  EXPECT_EQ(decision.selected, Backend::OpenCl);
  EXPECT_FALSE(decision.measured);
  EXPECT_EQ(decision.crossover, 0u);
  ASSERT_EQ(log_.count(Event::Kind::ConfigWarning), 1u);
  EXPECT_NE(log_.of(Event::Kind::ConfigWarning)[0].message.find("another device"), std::string::npos);
}

}  // namespace
}  // namespace kiln::runtime
