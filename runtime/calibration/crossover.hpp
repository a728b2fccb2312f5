// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <kiln/runtime/calibration.hpp>

namespace kiln::runtime {

/// The crossover of two backends that were timed at several sizes.
struct CrossoverFit {
  std::uint64_t rows = 0;  ///< the crossover, or kNoCrossover
  /// The measured sizes next to the crossover; both 0 if it is at an end of the range.
  std::uint64_t lower_size = 0;
  std::uint64_t upper_size = 0;
};

/// Returns the crossover that minimizes the loss at the worst measured size, and then the total loss. If only one
/// backend was timed at a size, that backend wins there. The timings must be sorted by rows in ascending order.
CrossoverFit find_crossing(const std::vector<Timing>& cpu, const std::vector<Timing>& device);

}  // namespace kiln::runtime
