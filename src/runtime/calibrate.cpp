#include "runtime/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"
#include "runtime/calibration_limits.hpp"
#include "runtime/crossover.hpp"

namespace kiln::runtime {
namespace {

constexpr unsigned kFewestRuns = 5;
constexpr unsigned kMostRunsOfSize = 10'000;
constexpr double kPatience = 10;  // times the wanted time, before fewer than five runs must do
constexpr double kHopeless = 20;  // times slower than the better side
constexpr double kClosest = 1.5;  // sizes nearer to each other than this factor say the same
constexpr double kNoisy = 0.5;    // how far apart the quartiles are, by the median
constexpr unsigned kStageRuns = 3;

using StageTimes = std::vector<std::pair<StageTime, std::vector<double>>>;

/// A backend under test, in a runtime that goes there or nowhere.
struct Side {
  Backend backend;
  Runtime runtime;
  std::vector<Timing> timings;
  std::vector<double> ms;  // at the size at hand
  double last_ratio = 0;   // to the best side, at the size before
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
  return options;
}

/// The measuring of one operation.
class Measurement {
 public:
  Measurement(const Clock& clock, Runtime& runtime, const Trial& trial, const CalibrationOptions& options)
      : clock_(clock), runtime_(runtime), trial_(trial), options_(options) {}

  Result<Crossovers> measure();

 private:
  void choose_sides();
  Status measure_size(std::uint64_t rows, bool going_up);
  Status warm_up(std::uint64_t rows);
  Status time_sides(std::uint64_t rows);
  Status leave(Side& side, std::uint64_t rows, const Error& error);
  void stop_hopeless(std::uint64_t rows);
  Status refine(Side& device);
  Status time_stages(Side& side);
  Status prepare(std::uint64_t rows);
  Result<double> time(Side& side);
  void stop(Side& side, std::string why);
  void note_noise();

  const Clock& clock_;
  Runtime& runtime_;
  const Trial& trial_;
  const CalibrationOptions& options_;
  std::uint64_t prepared_ = kNever;
  std::vector<Side> sides_;
  Crossovers out_;
};

void Measurement::choose_sides() {
  bool cpu = false;
  std::vector<Backend> devices;
  for (const Variant& variant : *trial_.operation) {
    cpu = cpu || !on_device(variant.backend);
    const auto& allowed = runtime_.options().devices;
    if (on_device(variant.backend) && std::find(allowed.begin(), allowed.end(), variant.backend) != allowed.end() &&
        std::find(devices.begin(), devices.end(), variant.backend) == devices.end()) {
      devices.push_back(variant.backend);
    }
  }
  if (cpu) sides_.push_back({Backend::Cpu, Runtime(runtime_.session(), options_of(runtime_, Backend::Cpu))});
  for (const Backend backend : devices) {
    const auto here = runtime_.session().devices(to_string(backend));
    if (!here || here->empty()) continue;
    sides_.push_back({backend, Runtime(runtime_.session(), options_of(runtime_, backend))});
  }
}

Status Measurement::prepare(std::uint64_t rows) {
  if (rows == prepared_) return {};
  prepared_ = rows;
  return trial_.prepare ? trial_.prepare(rows) : Status();
}

Result<double> Measurement::time(Side& side) {
  const std::chrono::nanoseconds start = clock_.steady();
  if (Status ran = trial_.run(side.runtime); !ran) return ran.error();
  return milliseconds_since(clock_, start);
}

void Measurement::stop(Side& side, std::string why) {
  side.stopped = true;
  why = std::string(to_string(side.backend)) + " " + why;
  if (out_.notes.size() < kMostNotes) out_.notes.push_back(why.substr(0, kLongestNote));
}

// Of a device that cannot do it the rest is still worth knowing; without the processor there is nothing to compare.
Status Measurement::leave(Side& side, std::uint64_t rows, const Error& error) {
  if (!on_device(side.backend)) return error;
  stop(side, "failed at " + std::to_string(rows) + " rows and was left there: " + error.message);
  side.ms.clear();
  return {};
}

// Compiles and first launches are not what is measured.
Status Measurement::warm_up(std::uint64_t rows) {
  for (Side& side : sides_) {
    side.ms.clear();
    if (side.stopped) continue;
    const Result<double> ran = time(side);
    if (ran) continue;
    if (Status without = leave(side, rows, ran.error()); !without) return without;
  }
  return {};
}

// In turns, so that what the machine does besides meets all alike.
Status Measurement::time_sides(std::uint64_t rows) {
  const std::chrono::nanoseconds start = clock_.steady();
  for (unsigned runs = 0; runs < kMostRunsOfSize; ++runs) {
    const double seconds = milliseconds_since(clock_, start) / 1000;
    if (runs >= kFewestRuns && seconds >= options_.seconds_per_size) break;
    if (runs >= 1 && seconds >= options_.seconds_per_size * kPatience) break;
    for (Side& side : sides_) {
      if (side.stopped) continue;
      const Result<double> ms = time(side);
      if (ms) side.ms.push_back(*ms);
      if (!ms) {
        if (Status without = leave(side, rows, ms.error()); !without) return without;
      }
    }
  }
  return {};
}

// A device is slow at small sizes, and that says nothing: a side is hopeless where it does not gain on the other while
// sizes grow, and only worth stopping where it takes time.
void Measurement::stop_hopeless(std::uint64_t rows) {
  double best = INFINITY;
  for (const Side& side : sides_) {
    if (!side.ms.empty()) best = std::min(best, side.timings.back().median_ms);
  }
  for (Side& side : sides_) {
    if (side.ms.empty()) continue;
    const double ms = side.timings.back().median_ms;
    const double ratio = best > 0 ? ms / best : 1;
    const bool twice = ratio > kHopeless && side.last_ratio > kHopeless && ratio > side.last_ratio * 0.8;
    side.last_ratio = ratio;
    if (twice && ms / 1000 * kFewestRuns > options_.seconds_per_size) {
      stop(side, "was not timed above " + std::to_string(rows) + " rows: it was " + std::to_string(std::lround(ratio)) +
                     " times slower there, and not less than before");
    }
  }
}

Status Measurement::measure_size(std::uint64_t rows, bool going_up) {
  if (Status made = prepare(rows); !made) return made;
  if (Status warm = warm_up(rows); !warm) return warm;
  if (Status timed = time_sides(rows); !timed) return timed;
  for (Side& side : sides_) {
    if (side.ms.empty()) continue;
    const auto after = std::find_if(side.timings.begin(), side.timings.end(),
                                    [&](const Timing& timing) { return timing.rows > rows; });
    side.timings.insert(after, timing_of(rows, side.ms));
  }
  if (going_up) stop_hopeless(rows);
  return {};
}

// Sizes are far apart: where the two lines cross, the straight line between them may be wrong by much.
Status Measurement::refine(Side& device) {
  for (unsigned more = 0; more < options_.refinements && !device.stopped; ++more) {
    const Crossing crossing = find_crossing(sides_.front().timings, device.timings);
    if (crossing.below == 0) return {};
    const double below = static_cast<double>(crossing.below);
    const double above = static_cast<double>(crossing.above);
    if (above / below < kClosest * kClosest) return {};
    if (Status timed = measure_size(static_cast<std::uint64_t>(std::sqrt(below * above)), false); !timed) return timed;
  }
  return {};
}

// A stage may come several times in a run: what counts is their sum.
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

Status Measurement::time_stages(Side& side) {
  if (side.timings.empty()) return {};
  if (Status made = prepare(side.timings.back().rows); !made) return made;
  RuntimeOptions options = side.runtime.options();
  options.time_stages = true;
  Runtime watched(runtime_.session(), options);
  StageTimes stages;
  for (unsigned run = 0; run < kStageRuns; ++run) {
    if (Status ran = trial_.run(watched); !ran) return ran;
    add_stages(watched.last_stages(), run, stages);
  }
  std::vector<StageTime>& longest = out_.longest[side.backend];
  for (auto& [stage, ms] : stages) {
    longest.push_back(stage);
    longest.back().ms = timing_of(0, std::move(ms)).median_ms;
  }
  std::stable_sort(longest.begin(), longest.end(),
                   [](const StageTime& left, const StageTime& right) { return left.ms > right.ms; });
  longest.resize(std::min<std::size_t>(longest.size(), 3));
  return {};
}

// One size that varies is a hiccup; several are a machine that was doing something else, too.
void Measurement::note_noise() {
  std::size_t noisy = 0;
  std::size_t all = 0;
  for (const Side& side : sides_) {
    all += side.timings.size();
    noisy += static_cast<std::size_t>(std::count_if(side.timings.begin(), side.timings.end(),
                                                    [](const Timing& timing) { return timing.spread > kNoisy; }));
  }
  if (noisy * 4 <= all || out_.notes.size() >= kMostNotes) return;
  out_.notes.emplace_back("the times varied much, as on a machine that is busy: calibrate again when it is not");
}

Result<Crossovers> Measurement::measure() {
  out_.operation = trial_.operation->name();
  out_.date = utc_text(clock_.wall());
  choose_sides();
  for (const std::uint64_t rows : options_.sizes) {
    if (Status timed = measure_size(rows, true); !timed) return timed.error();
  }
  for (Side& side : sides_) {
    if (Status timed = time_stages(side); !timed) return timed.error();
  }
  const bool choice = !sides_.empty() && !on_device(sides_.front().backend);
  for (Side& side : sides_) {
    if (!on_device(side.backend) || !choice) continue;
    if (Status refined = refine(side); !refined) return refined.error();
    out_.rows[side.backend] = find_crossing(sides_.front().timings, side.timings).rows;
  }
  note_noise();
  for (Side& side : sides_) out_.evidence[side.backend] = std::move(side.timings);
  return std::move(out_);
}

Status check(const std::vector<Trial>& trials, const CalibrationOptions& options) {
  if (options.sizes.empty() || options.sizes.size() > kMostTimings / 2 ||
      !std::is_sorted(options.sizes.begin(), options.sizes.end(), std::less_equal<>())) {
    return failure(Code::InvalidArgument, "the sizes of a calibration must be ascending, and at least one");
  }
  for (const Trial& trial : trials) {
    if (trial.operation == nullptr || !trial.run) {
      return failure(Code::InvalidArgument, "a trial needs an operation and a function that runs it");
    }
  }
  return {};
}

}  // namespace

Result<Calibration> calibrate_by(const Clock& clock, Runtime& runtime, const std::vector<Trial>& trials,
                                 const CalibrationOptions& options) {
  if (Status sensible = check(trials, options); !sensible) return sensible.error();
  Calibration calibration{this_machine(runtime.session()), {}};
  for (const Trial& trial : trials) {
    Result<Crossovers> measured = Measurement(clock, runtime, trial, options).measure();
    if (!measured) {
      return failure(measured.error().code,
                     std::string(trial.operation->name()) + " cannot be measured: " + measured.error().message,
                     measured.error().log);
    }
    calibration.operations.push_back(std::move(*measured));
  }
  return calibration;
}

Result<Calibration> calibrate(Runtime& runtime, const std::vector<Trial>& trials, const CalibrationOptions& options) {
  return calibrate_by(system_clock(), runtime, trials, options);
}

}  // namespace kiln::runtime
