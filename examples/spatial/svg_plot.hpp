// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "spatial/column.hpp"

namespace spatial {

/// Returns an SVG of a join: polygons in colors with their holes, each point in the color of the polygon that contains
/// it, and a legend with the counts. It shows the square from zero to kSceneSize.
std::string picture(const PointColumn& points, const PolygonColumn& polygons, const Pairs& pairs);

}  // namespace spatial
