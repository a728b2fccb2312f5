#pragma once

#include <string>

#include <kiln/needs.hpp>
#include <kiln/result.hpp>

namespace kiln::bench {

/// What a founding program needs, in the order in which it comes to use it: the first unit has the first kernel of a
/// typical first call.
///   sjoin  bounds, grid and point_in_polygon of kernels/geometry, and the 12 specs of CCCL's that a spatial join
///   needs;
///          it begins with the boxes of its rows, in bounds.cu
///   all    the 14 units (85 kernels) of kernels/geometry and all 18 specs; likewise
///   31     the CUDA units of examples/many_kernels; it begins with gemm_max_plus_f32
Result<Units> workload_named(const std::string& name);

}  // namespace kiln::bench
