#pragma once

#include <vector>

#include <kiln/runtime/calibration.hpp>

#include "base/clock.hpp"

namespace kiln::runtime {

/// As `calibrate`, by a clock that a test may move.
Result<Calibration> calibrate_by(const Clock& clock, Runtime& runtime, const std::vector<Trial>& trials,
                                 const CalibrationOptions& options);

}  // namespace kiln::runtime
