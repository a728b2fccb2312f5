// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kiln/runtime/calibration.hpp>

#include "base/clock.hpp"

namespace kiln::runtime {

/// As `calibrate`, with a given clock, for tests.
Result<Calibration> calibrate_by(const Clock& clock, Runtime& runtime,
                                 const std::vector<CalibrationCase>& calibration_cases,
                                 const CalibrationOptions& options);

}  // namespace kiln::runtime
