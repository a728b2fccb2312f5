// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kiln/runtime.hpp>

namespace kiln::test {

/// Returns an operation that is faster on a device: the sum of a series for each row, on one CPU thread or with an
/// OpenCL kernel. PoCL uses all cores and vector units of the same CPU, so it wins for many rows.
runtime::CalibrationCase series_trial();

}  // namespace kiln::test
