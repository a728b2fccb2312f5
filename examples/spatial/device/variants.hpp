#pragma once

#include "spatial/device/units.hpp"
#include "spatial/operands.hpp"

/// The operations on a device, whichever the dispatch selected: kernels and primitives are those of its kit.
namespace spatial::device {

kiln::Result<PlacedBoxes> bounds_of_points(runtime::Dispatch& dispatch, const Points& points);
kiln::Result<PlacedBoxes> bounds_of_polygons(runtime::Dispatch& dispatch, const Polygons& polygons);
kiln::Result<PlacedMask> within(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons);
kiln::Result<PlacedPairs> sjoin(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons);
/// Where every polygon is a rectangle along the axes.
kiln::Result<PlacedPairs> box_join(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons);

}  // namespace spatial::device
