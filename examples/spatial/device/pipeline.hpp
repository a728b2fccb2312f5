#pragma once

#include <memory>

#include <kiln/runtime.hpp>

#include "spatial/device/device_column.hpp"

/// The operations as launches: the same for every kind of device, since kernels and primitives come from the kit. Each
/// allocates what it needs before it launches, reads one scalar where only that says how much to allocate, and waits
/// for nothing else.
namespace spatial::device {

kiln::Result<DeviceBoxes> bounds(runtime::Dispatch& dispatch, const DevicePoints& points);
kiln::Result<DeviceBoxes> bounds(runtime::Dispatch& dispatch, const DevicePolygons& polygons);
kiln::Result<DeviceMask> within(runtime::Dispatch& dispatch, const DevicePoints& points,
                                const DevicePolygons& polygons);

/// What is left to do where a box surrounds a point.
enum class Refinement : unsigned char {
  Exact,  ///< look at the polygon
  None,   ///< nothing: the box is the polygon
};
kiln::Result<DevicePairs> join(runtime::Dispatch& dispatch, const DevicePoints& points, const DevicePolygons& polygons,
                               Refinement refinement);

/// The launch alone, for pipelines that begin with it. `sides` has room for four doubles a row.
kiln::Status launch_bounds(const DevicePolygons& polygons, const kiln::Buffer& sides);

}  // namespace spatial::device
