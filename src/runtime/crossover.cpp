#include "runtime/crossover.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace kiln::runtime {
namespace {

constexpr double kShortest = 1e-6;     // ms; a clock may say that no time passed at all
constexpr double kNeverBetter = 1000;  // how much slower a side counts as that was not timed any more

struct Size {
  std::uint64_t rows;
  double ratio;  // the device's time by the processor's
};

std::vector<Size> compared(const std::vector<Timing>& cpu, const std::vector<Timing>& device) {
  std::map<std::uint64_t, std::pair<double, double>> times;
  for (const Timing& timing : cpu) times[timing.rows].first = std::max(timing.median_ms, kShortest);
  for (const Timing& timing : device) times[timing.rows].second = std::max(timing.median_ms, kShortest);
  std::vector<Size> sizes;
  for (const auto& [rows, both] : times) {
    const auto [cpu_ms, device_ms] = both;
    const double ratio = cpu_ms == 0 ? 1 / kNeverBetter : device_ms == 0 ? kNeverBetter : device_ms / cpu_ms;
    sizes.push_back({rows, ratio});
  }
  return sizes;
}

// Where the ratio is one on the straight line between two sizes, both on logarithmic scales.
std::uint64_t between(const Size& below, const Size& above) {
  const double share = std::log(below.ratio) / (std::log(below.ratio) - std::log(above.ratio));
  const double low = static_cast<double>(below.rows);
  const double rows = low * std::pow(static_cast<double>(above.rows) / low, share);
  return std::clamp(static_cast<std::uint64_t>(std::ceil(rows)), below.rows + 1, above.rows);
}

}  // namespace

Crossing find_crossing(const std::vector<Timing>& cpu, const std::vector<Timing>& device) {
  const std::vector<Size> sizes = compared(cpu, device);
  // By the worst size first, then by all: the first size that goes to the device.
  std::size_t best = sizes.size();
  std::pair<double, double> least{INFINITY, INFINITY};
  for (std::size_t first = sizes.size() + 1; first-- > 0;) {
    std::pair<double, double> loss{1, 0};
    for (std::size_t at = 0; at < sizes.size(); ++at) {
      const double regret = std::max(at >= first ? sizes[at].ratio : 1 / sizes[at].ratio, 1.0);
      loss.first = std::max(loss.first, regret);
      loss.second += std::log(regret);
    }
    if (loss < least) {
      least = loss;
      best = first;
    }
  }
  Crossing out;
  out.regret = sizes.empty() ? 1 : least.first;
  if (best == sizes.size()) {
    out.rows = kNever;
  } else if (best == 0) {
    out.rows = sizes[0].rows;
  } else {
    const Size& below = sizes[best - 1];
    const Size& above = sizes[best];
    out.below = below.rows;
    out.above = above.rows;
    // Where noise or a bend has the device win below, too, no line crosses.
    const bool crosses = below.rows > 0 && below.ratio > 1 && above.ratio < 1;
    out.rows = crosses ? between(below, above) : above.rows;
  }
  return out;
}

}  // namespace kiln::runtime
