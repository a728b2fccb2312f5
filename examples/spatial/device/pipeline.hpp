// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <kiln/runtime.hpp>

#include "spatial/device/device_column.hpp"

/// The operations as sequences of launches. They are the same for every kind of device, because the kit provides
/// kernels and primitives. Each operation allocates its memory before it launches. It waits only to read one scalar
/// when that determines the size of an allocation.
namespace spatial::device {

kiln::Result<DeviceBoxes> bounds(runtime::Dispatch& dispatch, const DevicePoints& points);
kiln::Result<DeviceBoxes> bounds(runtime::Dispatch& dispatch, const DevicePolygons& polygons);
kiln::Result<DeviceMask> within(runtime::Dispatch& dispatch, const DevicePoints& points,
                                const DevicePolygons& polygons);

/// `within` for rectangles: the box is the polygon.
kiln::Result<DeviceMask> box_within(runtime::Dispatch& dispatch, const DevicePoints& points,
                                    const DevicePolygons& polygons);
/// Computes in fp64 or fp32; the result is in fp64.
kiln::Result<DeviceAreas> area(runtime::Dispatch& dispatch, const DevicePolygons& polygons,
                               runtime::Precision precision);
kiln::Result<DeviceAreas> box_area(runtime::Dispatch& dispatch, const DevicePolygons& polygons);

/// The test that follows if a box surrounds a point.
enum class Refinement : unsigned char {
  Exact,  ///< test the polygon
  None,   ///< no test: the box is the polygon
};
kiln::Result<DevicePairs> join(runtime::Dispatch& dispatch, const DevicePoints& points, const DevicePolygons& polygons,
                               Refinement refinement);

kiln::Result<DeviceWkb> to_wkb(runtime::Dispatch& dispatch, const DevicePoints& points);
kiln::Result<DeviceWkb> to_wkb(runtime::Dispatch& dispatch, const DevicePolygons& polygons);
kiln::Result<DeviceDissolved> dissolve(runtime::Dispatch& dispatch, const DevicePolygons& polygons,
                                       const DeviceKeys& keys);

/// Launches only the bounds kernel, for pipelines that begin with it. `sides` must have space for four doubles per row.
kiln::Status launch_bounds(const DevicePolygons& polygons, const kiln::Buffer& sides);

}  // namespace spatial::device
