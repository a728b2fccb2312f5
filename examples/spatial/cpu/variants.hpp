// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "spatial/operands.hpp"

/// The operations on the CPU, implemented with oneTBB.
namespace spatial::cpu {

kiln::Result<PlacedBoxes> bounds_of_points(runtime::Dispatch& dispatch, const Points& points);
kiln::Result<PlacedBoxes> bounds_of_polygons(runtime::Dispatch& dispatch, const Polygons& polygons);
kiln::Result<PlacedMask> within(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons);
/// `within` for the case that every polygon is an axis-parallel rectangle.
kiln::Result<PlacedMask> box_within(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons);
kiln::Result<PlacedAreas> area(runtime::Dispatch& dispatch, const Polygons& polygons);
/// `area` for the case that every polygon is an axis-parallel rectangle.
kiln::Result<PlacedAreas> box_area(runtime::Dispatch& dispatch, const Polygons& polygons);
kiln::Result<PlacedPairs> sjoin(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons);
/// `sjoin` for the case that every polygon is an axis-parallel rectangle.
kiln::Result<PlacedPairs> box_join(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons);
kiln::Result<PlacedWkb> wkb_of_points(runtime::Dispatch& dispatch, const Points& points);
kiln::Result<PlacedWkb> wkb_of_polygons(runtime::Dispatch& dispatch, const Polygons& polygons);
kiln::Result<PlacedDissolved> dissolve(runtime::Dispatch& dispatch, const Polygons& polygons, const Keys& keys);

}  // namespace spatial::cpu
