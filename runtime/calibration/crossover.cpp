// SPDX-License-Identifier: Apache-2.0
#include "runtime/calibration/crossover.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace kiln::runtime {
namespace {

constexpr double kMinDuration = 1e-6;  // ms; minimum time, because the clock resolution can give 0
constexpr double kNeverBetter = 1000;  // assumed slowdown of a backend that was not timed at a size

struct Size {
  std::uint64_t rows;
  double ratio;  // time on the device / time on the CPU
};

std::vector<Size> compared(const std::vector<Timing>& cpu, const std::vector<Timing>& device) {
  std::map<std::uint64_t, std::pair<double, double>> times;
  for (const Timing& timing : cpu) times[timing.rows].first = std::max(timing.median_ms, kMinDuration);
  for (const Timing& timing : device) times[timing.rows].second = std::max(timing.median_ms, kMinDuration);
  std::vector<Size> sizes;
  for (const auto& [rows, both] : times) {
    const auto [cpu_ms, device_ms] = both;
    const double ratio = cpu_ms == 0 ? 1 / kNeverBetter : device_ms == 0 ? kNeverBetter : device_ms / cpu_ms;
    sizes.push_back({rows, ratio});
  }
  return sizes;
}

// Interpolates the size at which the ratio is 1, linearly on logarithmic scales.
std::uint64_t between(const Size& below, const Size& above) {
  const double share = std::log(below.ratio) / (std::log(below.ratio) - std::log(above.ratio));
  const double low = static_cast<double>(below.rows);
  const double rows = low * std::pow(static_cast<double>(above.rows) / low, share);
  return std::clamp(static_cast<std::uint64_t>(std::ceil(rows)), below.rows + 1, above.rows);
}

}  // namespace

CrossoverFit find_crossing(const std::vector<Timing>& cpu, const std::vector<Timing>& device) {
  const std::vector<Size> sizes = compared(cpu, device);
  // Minimize the worst ratio first, then the sum over all sizes. `best` is the first size on the device.
  std::size_t best = sizes.size();
  std::pair<double, double> minimum{INFINITY, INFINITY};
  for (std::size_t first = sizes.size() + 1; first-- > 0;) {
    std::pair<double, double> loss{1, 0};
    for (std::size_t at = 0; at < sizes.size(); ++at) {
      const double regret = std::max(at >= first ? sizes[at].ratio : 1 / sizes[at].ratio, 1.0);
      loss.first = std::max(loss.first, regret);
      loss.second += std::log(regret);
    }
    if (loss < minimum) {
      minimum = loss;
      best = first;
    }
  }
  CrossoverFit out;
  if (best == sizes.size()) {
    out.rows = kNoCrossover;
  } else if (best == 0) {
    out.rows = sizes[0].rows;
  } else {
    const Size& below = sizes[best - 1];
    const Size& above = sizes[best];
    out.lower_size = below.rows;
    out.upper_size = above.rows;
    // If the device also wins below, because of noise or a bend, there is no crossing to interpolate.
    const bool crosses = below.rows > 0 && below.ratio > 1 && above.ratio < 1;
    out.rows = crosses ? between(below, above) : above.rows;
  }
  return out;
}

}  // namespace kiln::runtime
