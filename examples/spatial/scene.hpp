// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "spatial/column.hpp"

namespace spatial {

/// Generated data: points anywhere in a square, and star-shaped polygons with holes. A few rows of both are null, and a
/// few are empty.
struct SyntheticData {
  PointColumn points;
  PolygonColumn polygons;
  KeyColumn keys;  ///< one per polygon of a coverage; otherwise none
};

/// The side length of the square, which begins at zero.
inline constexpr double kSceneSize = 1000;

struct SceneOptions {
  std::size_t points = 100'000;
  std::size_t polygons = 1'000;
  std::uint64_t seed = 1;
  double cover = 1;  ///< approximate total area of all polygons, as a fraction of the square
};
/// Generates a scene; the same options yield the same scene.
SyntheticData make_scene(const SceneOptions& options);
/// Generates a coverage without points: quadrilaterals that share vertices, with about one key per 16 of them, and a
/// few null, empty and missing ones. The same options yield the same coverage.
SyntheticData make_coverage(const SceneOptions& options);

}  // namespace spatial
