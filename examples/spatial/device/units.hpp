#pragma once

#include <string>

#include <kiln/kiln.hpp>
#include <kiln/runtime/mode.hpp>

namespace spatial {

/// The unit that has the kernel of this name; null where none has.
const kiln::Unit* find_unit(kiln::runtime::Backend backend, const std::string& kernel);

/// What opening a column asks for, by the family of its rows, and what each operation compiles.
namespace opencl {
extern const kiln::Needs point_column_needs;
extern const kiln::Needs polygon_column_needs;
extern const kiln::Needs bounds_of_points_needs;
extern const kiln::Needs bounds_of_polygons_needs;
extern const kiln::Needs within_needs;
extern const kiln::Needs sjoin_needs;
extern const kiln::Needs box_join_needs;
}  // namespace opencl
namespace cuda {
extern const kiln::Needs point_column_needs;
extern const kiln::Needs polygon_column_needs;
extern const kiln::Needs bounds_of_points_needs;
extern const kiln::Needs bounds_of_polygons_needs;
extern const kiln::Needs within_needs;
extern const kiln::Needs sjoin_needs;
extern const kiln::Needs box_join_needs;
}  // namespace cuda

/// For the beginning of a program, while it has one thread. PoCL's binaries have code for any size of work group, and
/// at the first launch in each process it compiles again, for the size at hand: a tenth of a second a kernel. Unless
/// the environment says which sizes to put into the binary; all kernels here have one. What was set before stays.
void let_pocl_keep_work_groups();

}  // namespace spatial
