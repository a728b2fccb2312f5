#pragma once

#include <cstdint>
#include <vector>

#include <kiln/runtime/calibration.hpp>

namespace kiln::runtime {

/// What is to be learned of two sides that were timed at sizes.
struct Crossing {
  std::uint64_t rows = 0;  ///< the crossover; kNever
  /// The measured sizes around it, in which it lies; both zero where it lies at an end.
  std::uint64_t below = 0;
  std::uint64_t above = 0;
  double regret = 1;  ///< at the worst of the measured sizes: the chosen side's time by the better one's
};

/// The number of rows from which on a device is to be taken so that the worst measured size loses least, and of several
/// such the one that loses least in all. A size at which only one side was timed is that side's. The times are
/// ascending by rows.
Crossing find_crossing(const std::vector<Timing>& cpu, const std::vector<Timing>& device);

}  // namespace kiln::runtime
