// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kiln/kiln.hpp>
#include <kiln/runtime/mode.hpp>

namespace spatial {

/// Returns the unit that contains the kernel, or null if there is none.
const kiln::Unit* find_unit(kiln::runtime::Backend backend, const std::string& kernel);

/// The units that `open` requests for a column, by geometry type, and the units of each operation.
namespace opencl {
extern const kiln::Requirements point_column_requirements;
extern const kiln::Requirements polygon_column_requirements;
extern const kiln::Requirements bounds_of_points_requirements;
extern const kiln::Requirements bounds_of_polygons_requirements;
extern const kiln::Requirements within_requirements;
extern const kiln::Requirements box_within_requirements;
extern const kiln::Requirements area_in_fp64_requirements;
extern const kiln::Requirements area_in_fp32_requirements;
extern const kiln::Requirements box_area_requirements;
extern const kiln::Requirements sjoin_requirements;
extern const kiln::Requirements box_join_requirements;
extern const kiln::Requirements wkb_of_points_requirements;
extern const kiln::Requirements wkb_of_polygons_requirements;
extern const kiln::Requirements dissolve_requirements;
}  // namespace opencl
namespace cuda {
extern const kiln::Requirements point_column_requirements;
extern const kiln::Requirements polygon_column_requirements;
extern const kiln::Requirements bounds_of_points_requirements;
extern const kiln::Requirements bounds_of_polygons_requirements;
extern const kiln::Requirements within_requirements;
extern const kiln::Requirements box_within_requirements;
extern const kiln::Requirements area_in_fp64_requirements;
extern const kiln::Requirements area_in_fp32_requirements;
extern const kiln::Requirements box_area_requirements;
extern const kiln::Requirements sjoin_requirements;
extern const kiln::Requirements box_join_requirements;
extern const kiln::Requirements wkb_of_points_requirements;
extern const kiln::Requirements wkb_of_polygons_requirements;
extern const kiln::Requirements dissolve_requirements;
}  // namespace cuda

/// Lets PoCL put the code for one work group size into its binaries. Call it at the start of the program, before it
/// starts threads. By default PoCL's binaries contain code for any size, and PoCL recompiles a kernel for the actual
/// size at the first launch in each process, which takes a tenth of a second per kernel. All kernels here use one size.
/// A value already set in the environment is not changed.
void let_pocl_keep_work_groups();

}  // namespace spatial
