#pragma once

#include <string>

#include "spatial/column.hpp"

namespace spatial {

/// An SVG of a join: polygons in colours with their holes, each point in the colour of the polygon that it is within,
/// and a legend with the counts. The square from zero to kSceneSize is what it shows.
std::string picture(const PointColumn& points, const PolygonColumn& polygons, const Pairs& pairs);

}  // namespace spatial
