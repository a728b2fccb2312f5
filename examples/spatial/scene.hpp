#pragma once

#include <cstdint>

#include "spatial/column.hpp"

namespace spatial {

/// Made-up data: points anywhere in a square, and star-shaped polygons with holes; a few rows of both are null, and a
/// few are empty.
struct Scene {
  PointColumn points;
  PolygonColumn polygons;
};

/// The sides of the square, from zero.
inline constexpr double kSceneSize = 1000;

struct SceneOptions {
  std::size_t points = 100'000;
  std::size_t polygons = 1'000;
  std::uint64_t seed = 1;
  double cover = 1;  ///< the areas of all polygons together, about, as a share of the square
};
/// The same for the same options.
Scene make_scene(const SceneOptions& options);

}  // namespace spatial
