// SPDX-License-Identifier: Apache-2.0
// Measures how much slower mode auto is than the better of the modes cpu and gpu, after `kiln calibrate`: each
// operation of examples/spatial at 12 sizes, and one for which PoCL is faster. The three modes alternate in one
// process. Returns 1 if auto is slower than the limit. Started by `kiln calibrate`, it measures only the latter
// operation; `spatial calibrate` measures the others.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <kiln/runtime.hpp>

#include "examples/series_trial.hpp"
#include "spatial/calibration_cases.hpp"

namespace {

using namespace kiln::runtime;
using Clock = std::chrono::steady_clock;

constexpr double kBound = 1.15;
constexpr unsigned kSizes = 12;
constexpr double kMaxBytes = 1e6;
constexpr unsigned kMinRounds = 20;
constexpr unsigned kMaxRounds = 4'000;
constexpr double kSeconds = 2;
constexpr double kMaxSeconds = 30;
constexpr double kError = 0.03;  // maximum standard error of a median, relative; more runs are made until it is reached

/// The CPU is measured twice: the difference of the two shows the noise of the machine.
enum { kAuto, kCpu, kGpu, kCpuAgain, kSides };

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Figures {
  double median = 0;
  double spread = 0;  // half of the interquartile range, in percent of the median
};

Figures figures_of(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const double median = ms[ms.size() / 2];
  return {median, 50 * (ms[ms.size() * 3 / 4] - ms[ms.size() / 4]) / median};
}

/// The mode that runs after the device finds cold caches. Over these three rounds, each side runs once after each of
/// the others.
constexpr int kOrders[3][kSides] = {
    {kAuto, kCpu, kGpu, kCpuAgain}, {kAuto, kGpu, kCpu, kCpuAgain}, {kGpu, kAuto, kCpuAgain, kCpu}};

class Campaign {
 public:
  explicit Campaign(const kiln::Session& session) : session_(session) {
    for (const Mode mode : {Mode::Auto, Mode::Cpu, Mode::Gpu, Mode::Cpu}) {
      RuntimeOptions options;
      options.mode = mode;
      options.devices = {Backend::OpenCl};
      options.allow_cpu_device = true;  // PoCL
      sides_.emplace_back(session, options);
    }
  }

  /// Runs all operations, or the one of this name.
  kiln::Status run(const std::string& only) {
    std::vector<CalibrationCase> calibration_cases = spatial::calibration_cases();
    calibration_cases.push_back(kiln::test::series_trial());
    for (const CalibrationCase& calibration_case : calibration_cases) {
      if (!only.empty() && only != calibration_case.operation->name()) continue;
      std::printf("%s\n%9s  %-8s %18s %18s %18s  %6s  %s  %s\n", calibration_case.operation->name(), "rows", "auto is",
                  "auto", "cpu", "gpu (opencl)", "runs", "cpu / cpu", "auto / better");
      for (unsigned at = 0; at < kSizes; ++at) {
        const double rows = std::round(std::pow(kMaxBytes, at / double{kSizes - 1}));
        if (kiln::Status timed = time_size(calibration_case, static_cast<std::uint64_t>(rows)); !timed) return timed;
      }
      for (const int side : {kCpu, kGpu}) {
        if (kiln::Status timed = print_stages(calibration_case, side); !timed) return timed;
      }
      std::printf("\n");
    }
    std::printf("worst ratio %.3f, limit %.2f: %s\n", worst_, kBound,
                holds() ? "holds at every size" : "DOES NOT HOLD");
    return {};
  }
  bool holds() const { return worst_ <= kBound; }

 private:
  kiln::Status time_size(const CalibrationCase& calibration_case, std::uint64_t rows) {
    if (kiln::Status made = calibration_case.prepare(rows); !made) return made;
    for (Runtime& side : sides_) {
      if (kiln::Status warm = calibration_case.run(side); !warm) return warm;
    }
    std::vector<double> ms[kSides];
    const auto start = Clock::now();
    for (unsigned round = 0; round < kMaxRounds; ++round) {
      // The number of rounds depends on the noise, not on the ratio.
      const bool enough = round >= kMinRounds && seconds_since(start) > kSeconds;
      if (enough && (round % 16 == 0 || round < 64) && known_well(ms)) break;
      if (enough && seconds_since(start) > kMaxSeconds) break;
      for (const int side : kOrders[round % 3]) {
        const auto begin = Clock::now();
        if (kiln::Status ran = calibration_case.run(sides_[side]); !ran) return ran;
        ms[side].push_back(seconds_since(begin) * 1000);
      }
    }
    return print(calibration_case, rows, ms);
  }

  static bool known_well(const std::vector<double>* ms) {
    return std::all_of(ms, ms + kSides, [](const std::vector<double>& side) {
      // For a normal distribution the quartiles are 1.35 deviations apart, and the error of a median is 1.25 times that
      // of a mean.
      const double deviation = figures_of(side).spread / 50 / 1.35;
      return 1.25 * deviation / std::sqrt(static_cast<double>(side.size())) <= kError;
    });
  }

  kiln::Status print(const CalibrationCase& calibration_case, std::uint64_t rows, const std::vector<double>* ms) {
    DispatchRequest request;
    request.rows = rows;
    const auto decision = sides_[kAuto].decide(*calibration_case.operation, request);
    if (!decision) return decision.error();
    const Figures of[kSides] = {figures_of(ms[kAuto]), figures_of(ms[kCpu]), figures_of(ms[kGpu]),
                                figures_of(ms[kCpuAgain])};
    const double ratio = of[kAuto].median / std::min(of[kCpu].median, of[kGpu].median);
    worst_ = std::max(worst_, ratio);
    std::printf("%9llu  %-8s", static_cast<unsigned long long>(rows), to_string(decision->selected));
    for (const int side : {kAuto, kCpu, kGpu}) std::printf(" %9.4f ms ±%3.0f %%", of[side].median, of[side].spread);
    std::printf("  %6zu      %.3f  %.3f%s\n", ms[kAuto].size(), of[kCpuAgain].median / of[kCpu].median, ratio,
                ratio <= kBound ? "" : " TOO SLOW");
    std::fflush(stdout);
    return {};
  }

  kiln::Status print_stages(const CalibrationCase& calibration_case, int side) {
    RuntimeOptions options = sides_[side].options();
    options.time_stages = true;
    Runtime watched(session_, options);
    for (int warm = 0; warm < 2; ++warm) {
      if (kiln::Status ran = calibration_case.run(watched); !ran) return ran;
    }
    std::vector<StageTime> stages = watched.last_stages();
    std::stable_sort(stages.begin(), stages.end(), [](const auto& a, const auto& b) { return a.ms > b.ms; });
    stages.resize(std::min<std::size_t>(stages.size(), 3));
    std::printf("%9.0f  longest stages on %s:", kMaxBytes, side == kCpu ? "cpu" : "opencl");
    for (const StageTime& stage : stages) {
      std::printf(" %s %.2f ms (%s)%s", stage.stage.c_str(), stage.ms, stage.location.c_str(),
                  &stage == &stages.back() ? "" : ",");
    }
    std::printf("%s\n", stages.empty() ? " none were reported" : "");
    return {};
  }

  kiln::Session session_;
  std::vector<Runtime> sides_;
  double worst_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  auto session = kiln::Session::open().value();
  if (const auto asked = requested_calibration()) {
    Runtime runtime(session);
    const auto measured = calibrate(runtime, {kiln::test::series_trial()}, asked->options);
    return measured && measured->write(asked->path).has_value() ? 0 : 2;
  }
  std::printf("auto compared with the better of cpu and gpu, after `kiln calibrate -- spatial calibrate`\n%s\n",
              this_machine(session).text().c_str());
  std::printf(
      "medians, ± half of the interquartile range; the three modes alternate; PoCL really executes "
      "on this CPU\n\n");
  Campaign campaign(session);
  if (kiln::Status status = campaign.run(count > 1 ? arguments[1] : ""); !status) {
    std::fprintf(stderr, "%s\n%s\n", status.error().message.c_str(), status.error().log.c_str());
    return 2;
  }
  return campaign.holds() ? 0 : 1;
}
