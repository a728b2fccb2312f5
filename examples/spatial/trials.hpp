#pragma once

#include <vector>

#include <kiln/runtime.hpp>

namespace spatial {

/// Each operation on made-up data, to be timed: boxes of points and of polygons, points within one polygon, and joins
/// of points with a thousand polygons and with a thousand rectangles.
std::vector<kiln::runtime::Trial> trials();

}  // namespace spatial
