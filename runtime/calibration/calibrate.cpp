// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibration/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "runtime/calibration/calibration_limits.hpp"
#include "runtime/calibration/crossover.hpp"

namespace kiln::runtime {
namespace {

constexpr unsigned kMinRuns = 5;
constexpr unsigned kMaxRunsOfSize = 10'000;
constexpr double kHangTimeout = 10;  // factor of the target time after which fewer than five runs are accepted
constexpr double kHopeless = 20;     // factor by which a backend is slower than the best one before it is dropped
constexpr double kClosest = 1.5;     // minimum factor between two sizes
constexpr double kNoisy = 0.5;       // interquartile range relative to the median
constexpr unsigned kStageRuns = 3;

using StageTimes = std::vector<std::pair<StageTime, std::vector<double>>>;

/// A backend under test, with a runtime that uses only this backend.
struct BackendRun {
  Backend backend;
  Runtime runtime;
  std::vector<Timing> timings;
  std::vector<double> ms;  // times at the current size
  double last_ratio = 0;   // to the best backend, at the previous size
  bool stopped = false;
};

double quantile(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<std::size_t>(std::lround(share * static_cast<double>(sorted.size() - 1)))];
}

Timing timing_of(std::uint64_t rows, std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const double median = quantile(ms, 0.5);
  const double spread = median > 0 ? (quantile(ms, 0.75) - quantile(ms, 0.25)) / median : 0;
  return {rows, median, spread, static_cast<unsigned>(ms.size())};
}

RuntimeOptions options_of(const Runtime& runtime, Backend backend) {
  RuntimeOptions options = runtime.options();
  options.mode = on_device(backend) ? Mode::Gpu : Mode::Cpu;
  options.devices = {};
  if (on_device(backend)) options.devices.push_back(backend);
  options.time_stages = false;
  options.allow_cpu_device = runtime.allow_cpu_device();
  return options;
}

/// The measurement of one operation. Not thread-safe.
class OperationTimer {
 public:
  OperationTimer(const Clock& clock, Runtime& runtime, const CalibrationCase& calibration_case,
                 const CalibrationOptions& options)
      : clock_(clock), runtime_(runtime), calibration_case_(calibration_case), options_(options) {}

  Result<OperationCalibration> measure();

 private:
  void choose_sides();
  Status measure_size(std::uint64_t rows, bool going_up);
  Status warm_up(std::uint64_t rows);
  Status time_sides(std::uint64_t rows);
  Status drop_backend(BackendRun& side, std::uint64_t rows, const Error& error);
  void stop_slow_backends(std::uint64_t rows);
  Status refine(BackendRun& device);
  Status time_stages(BackendRun& side);
  Status prepare(std::uint64_t rows);
  Result<double> time(BackendRun& side);
  void stop(BackendRun& side, const std::string& reason);
  void add_note(const std::string& note);
  void add_noise_note();

  const Clock& clock_;
  Runtime& runtime_;
  const CalibrationCase& calibration_case_;
  const CalibrationOptions& options_;
  std::uint64_t prepared_ = kNoCrossover;
  std::vector<BackendRun> sides_;
  OperationCalibration out_;
};

void OperationTimer::choose_sides() {
  bool cpu = false;
  std::vector<Backend> devices;
  for (const Variant& variant : *calibration_case_.operation) {
    cpu = cpu || !on_device(variant.backend);
    const auto& allowed = runtime_.options().devices;
    if (on_device(variant.backend) && std::find(allowed.begin(), allowed.end(), variant.backend) != allowed.end() &&
        std::find(devices.begin(), devices.end(), variant.backend) == devices.end()) {
      devices.push_back(variant.backend);
    }
  }
  if (cpu) sides_.push_back({Backend::Cpu, Runtime(runtime_.session(), options_of(runtime_, Backend::Cpu))});
  for (const Backend backend : devices) {
    const auto here = runtime_.session().devices(device_backend(backend));
    if (!here || here->empty()) continue;
    if (here->front().is_cpu && !runtime_.allow_cpu_device()) {
      add_note(std::string(to_string(backend)) + " was not measured: its device is a CPU; set KILN_ALLOW_CPU_DEVICE=1");
      continue;
    }
    sides_.push_back({backend, Runtime(runtime_.session(), options_of(runtime_, backend))});
  }
}

Status OperationTimer::prepare(std::uint64_t rows) {
  if (rows == prepared_) return {};
  prepared_ = rows;
  return calibration_case_.prepare ? calibration_case_.prepare(rows) : Status();
}

Result<double> OperationTimer::time(BackendRun& side) {
  const std::chrono::nanoseconds start = clock_.steady();
  if (Status ran = calibration_case_.run(side.runtime); !ran) return ran.error();
  return milliseconds_since(clock_, start);
}

void OperationTimer::stop(BackendRun& side, const std::string& reason) {
  side.stopped = true;
  add_note(std::string(to_string(side.backend)) + " " + reason);
}

void OperationTimer::add_note(const std::string& note) {
  if (out_.notes.size() < kMaxNotes) out_.notes.push_back(note.substr(0, kMaxNoteLength));
}

// If a device fails, the other devices are still measured. If the CPU fails, there is nothing to compare with.
Status OperationTimer::drop_backend(BackendRun& side, std::uint64_t rows, const Error& error) {
  if (!on_device(side.backend)) return error;
  stop(side, "failed at " + std::to_string(rows) + " rows and was not measured further: " + error.message);
  side.ms.clear();
  return {};
}

// Runs each backend once, so that compiles and first launches are not measured.
Status OperationTimer::warm_up(std::uint64_t rows) {
  for (BackendRun& side : sides_) {
    side.ms.clear();
    if (side.stopped) continue;
    const Result<double> ran = time(side);
    if (ran) continue;
    if (Status without = drop_backend(side, rows, ran.error()); !without) return without;
  }
  return {};
}

// Alternates between the backends, so that other load on the machine affects all of them equally.
Status OperationTimer::time_sides(std::uint64_t rows) {
  const std::chrono::nanoseconds start = clock_.steady();
  for (unsigned runs = 0; runs < kMaxRunsOfSize; ++runs) {
    const double seconds = milliseconds_since(clock_, start) / 1000;
    if (runs >= kMinRuns && seconds >= options_.seconds_per_size) break;
    if (runs >= 1 && seconds >= options_.seconds_per_size * kHangTimeout) break;
    for (BackendRun& side : sides_) {
      if (side.stopped) continue;
      const Result<double> ms = time(side);
      if (ms) side.ms.push_back(*ms);
      if (!ms) {
        if (Status without = drop_backend(side, rows, ms.error()); !without) return without;
      }
    }
  }
  return {};
}

// Stops a backend that is much slower and does not improve with the size. Slowness at small sizes alone is no reason to
// stop, and neither is a backend that takes little time.
void OperationTimer::stop_slow_backends(std::uint64_t rows) {
  double best = INFINITY;
  for (const BackendRun& side : sides_) {
    if (!side.ms.empty()) best = std::min(best, side.timings.back().median_ms);
  }
  for (BackendRun& side : sides_) {
    if (side.ms.empty()) continue;
    const double ms = side.timings.back().median_ms;
    const double ratio = best > 0 ? ms / best : 1;
    const bool twice = ratio > kHopeless && side.last_ratio > kHopeless && ratio > side.last_ratio * 0.8;
    side.last_ratio = ratio;
    if (twice && ms / 1000 * kMinRuns > options_.seconds_per_size) {
      stop(side, "was not measured above " + std::to_string(rows) + " rows: it was " +
                     std::to_string(std::lround(ratio)) + " times slower, with no improvement over the previous size");
    }
  }
}

Status OperationTimer::measure_size(std::uint64_t rows, bool going_up) {
  if (Status made = prepare(rows); !made) return made;
  if (Status warm = warm_up(rows); !warm) return warm;
  if (Status timed = time_sides(rows); !timed) return timed;
  for (BackendRun& side : sides_) {
    if (side.ms.empty()) continue;
    const auto after = std::find_if(side.timings.begin(), side.timings.end(),
                                    [&](const Timing& timing) { return timing.rows > rows; });
    side.timings.insert(after, timing_of(rows, side.ms));
  }
  if (going_up) stop_slow_backends(rows);
  return {};
}

// Measures more sizes around the crossover, because linear interpolation between distant sizes is inaccurate.
Status OperationTimer::refine(BackendRun& device) {
  for (unsigned more = 0; more < options_.refinements && !device.stopped; ++more) {
    const CrossoverFit crossing = find_crossing(sides_.front().timings, device.timings);
    if (crossing.lower_size == 0) return {};
    const double below = static_cast<double>(crossing.lower_size);
    const double above = static_cast<double>(crossing.upper_size);
    if (above / below < kClosest * kClosest) return {};
    if (Status timed = measure_size(static_cast<std::uint64_t>(std::sqrt(below * above)), false); !timed) return timed;
  }
  return {};
}

// Sums the times of a stage that occurs several times in a run.
void add_stages(const std::vector<StageTime>& ended, unsigned run, StageTimes& stages) {
  for (const StageTime& stage : ended) {
    const auto same = [&](const auto& other) {
      return other.first.operation == stage.operation && other.first.stage == stage.stage;
    };
    auto at = std::find_if(stages.begin(), stages.end(), same);
    if (at == stages.end()) at = stages.insert(at, {stage, std::vector<double>(kStageRuns)});
    at->second[run] += stage.ms;
  }
}

Status OperationTimer::time_stages(BackendRun& side) {
  if (side.timings.empty()) return {};
  if (Status made = prepare(side.timings.back().rows); !made) return made;
  RuntimeOptions options = side.runtime.options();
  options.time_stages = true;
  Runtime watched(runtime_.session(), options);
  StageTimes stages;
  for (unsigned run = 0; run < kStageRuns; ++run) {
    if (Status ran = calibration_case_.run(watched); !ran) return ran;
    add_stages(watched.last_stages(), run, stages);
  }
  std::vector<StageTime>& longest = out_.longest_stages[side.backend];
  for (auto& [stage, ms] : stages) {
    longest.push_back(stage);
    longest.back().ms = timing_of(0, std::move(ms)).median_ms;
  }
  std::stable_sort(longest.begin(), longest.end(),
                   [](const StageTime& remaining, const StageTime& right) { return remaining.ms > right.ms; });
  longest.resize(std::min<std::size_t>(longest.size(), 3));
  return {};
}

// Adds a note if more than a quarter of the timings vary much, which indicates a busy machine.
void OperationTimer::add_noise_note() {
  std::size_t noisy = 0;
  std::size_t all = 0;
  for (const BackendRun& side : sides_) {
    all += side.timings.size();
    noisy += static_cast<std::size_t>(std::count_if(side.timings.begin(), side.timings.end(),
                                                    [](const Timing& timing) { return timing.spread > kNoisy; }));
  }
  if (noisy * 4 <= all) return;
  add_note("the times vary too much, probably because the machine was busy: calibrate again on an idle machine");
}

Result<OperationCalibration> OperationTimer::measure() {
  out_.operation = calibration_case_.operation->name();
  out_.date = format_utc(clock_.wall());
  choose_sides();
  for (const std::uint64_t rows : options_.sizes) {
    if (Status timed = measure_size(rows, true); !timed) return timed.error();
  }
  for (BackendRun& side : sides_) {
    if (Status timed = time_stages(side); !timed) return timed.error();
  }
  const bool choice = !sides_.empty() && !on_device(sides_.front().backend);
  for (BackendRun& side : sides_) {
    if (!on_device(side.backend) || !choice) continue;
    if (Status refined = refine(side); !refined) return refined.error();
    out_.thresholds[side.backend] = find_crossing(sides_.front().timings, side.timings).rows;
  }
  add_noise_note();
  for (BackendRun& side : sides_) out_.timings[side.backend] = std::move(side.timings);
  return std::move(out_);
}

Status check(const std::vector<CalibrationCase>& calibration_cases, const CalibrationOptions& options) {
  if (options.sizes.empty() || options.sizes.size() > kMaxTimings / 2 ||
      !std::is_sorted(options.sizes.begin(), options.sizes.end(), std::less_equal<>())) {
    return make_error(Code::InvalidArgument, "the sizes of a calibration must be ascending and not empty");
  }
  for (const CalibrationCase& calibration_case : calibration_cases) {
    if (calibration_case.operation == nullptr || !calibration_case.run) {
      return make_error(Code::InvalidArgument, "a calibration case needs an operation and a function that runs it");
    }
  }
  return {};
}

}  // namespace

Result<Calibration> calibrate_by(const Clock& clock, Runtime& runtime,
                                 const std::vector<CalibrationCase>& calibration_cases,
                                 const CalibrationOptions& options) {
  if (Status sensible = check(calibration_cases, options); !sensible) return sensible.error();
  Calibration calibration{this_machine(runtime.session()), {}};
  for (const CalibrationCase& calibration_case : calibration_cases) {
    Result<OperationCalibration> measured = OperationTimer(clock, runtime, calibration_case, options).measure();
    if (!measured) {
      return make_error(
          measured.error().code,
          std::string(calibration_case.operation->name()) + " cannot be measured: " + measured.error().message,
          measured.error().log);
    }
    calibration.operations.push_back(std::move(*measured));
  }
  return calibration;
}

Result<Calibration> calibrate(Runtime& runtime, const std::vector<CalibrationCase>& calibration_cases,
                              const CalibrationOptions& options) {
  return calibrate_by(system_clock(), runtime, calibration_cases, options);
}

}  // namespace kiln::runtime
