// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kiln/runtime.hpp>

namespace spatial {

/// Returns each operation on generated data, for calibration: boxes of points and of polygons, points within one
/// polygon, and joins of points with a thousand polygons and with a thousand rectangles.
std::vector<kiln::runtime::CalibrationCase> calibration_cases();

}  // namespace spatial
