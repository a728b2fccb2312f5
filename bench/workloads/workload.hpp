// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kiln/requirements.hpp>
#include <kiln/result.hpp>

namespace kiln::bench {

/// Returns the units that a predefined program needs, in the order of use: the first unit has the first kernel of a
/// typical first call.
///   sjoin  bounds, grid and point_in_polygon of examples/kernels/geometry, and the 12 CCCL specs that a spatial join
///   needs;
///          it starts with the boxes of its rows, in bounds.cu
///   all    the 14 units (85 kernels) of examples/kernels/geometry and all 18 specs; starts like sjoin
///   31     the CUDA units of examples/many_kernels; it starts with gemm_max_plus_f32
Result<Units> workload_named(const std::string& name);

}  // namespace kiln::bench
