// SPDX-License-Identifier: Apache-2.0
#include "spatial/calibration_cases.hpp"

#include <functional>
#include <memory>
#include <utility>

#include "spatial/operations.hpp"
#include "spatial/scene.hpp"

namespace spatial {
namespace {

constexpr std::size_t kPolygons = 1'000;

template <class Placed>
kiln::Status status_of(const kiln::Result<Placed>& result) {
  return result ? kiln::Status() : kiln::Status(result.error());
}

/// Returns the boxes of polygons as polygons; a join with them is a join with rectangles.
PolygonColumn rectangles_around(const PolygonColumn& polygons) {
  PolygonColumn out;
  for (std::size_t row = 0; row < polygons.rows(); ++row) {
    Box box;
    for (std::int32_t i = polygons.offsets[polygons.rings[row]]; i < polygons.offsets[polygons.rings[row + 1]]; ++i) {
      box.add({polygons.x[i], polygons.y[i]});
    }
    if (!box.empty()) {
      out.add_ring({{box.min_x, box.min_y},
                    {box.max_x, box.min_y},
                    {box.max_x, box.max_y},
                    {box.min_x, box.max_y},
                    {box.min_x, box.min_y}});
    }
    out.end_row();
  }
  return out;
}

using Make = std::function<SyntheticData(std::uint64_t rows)>;
using Run = kiln::Status (*)(runtime::Runtime&, const SyntheticData&);

runtime::CalibrationCase calibration_case(const runtime::Operation& operation, Make make, Run run) {
  const auto scene = std::make_shared<SyntheticData>();
  runtime::CalibrationCase out;
  out.operation = &operation;
  out.prepare = [scene, make = std::move(make)](std::uint64_t rows) {
    *scene = make(rows);
    return kiln::Status();
  };
  out.run = [scene, run](runtime::Runtime& runtime) { return run(runtime, *scene); };
  return out;
}

SyntheticData joined(std::uint64_t rows) { return make_scene({.points = rows, .polygons = kPolygons}); }

}  // namespace

std::vector<runtime::CalibrationCase> calibration_cases() {
  const auto points = [](std::uint64_t rows) { return make_scene({.points = rows, .polygons = 0}); };
  const auto polygons = [](std::uint64_t rows) { return make_scene({.points = 0, .polygons = rows}); };
  const auto one_polygon = [](std::uint64_t rows) { return make_scene({.points = rows, .polygons = 1}); };
  const auto rectangles = [](std::uint64_t rows) {
    SyntheticData scene = joined(rows);
    scene.polygons = rectangles_around(scene.polygons);
    return scene;
  };
  const Run join = [](runtime::Runtime& runtime, const SyntheticData& scene) {
    return status_of(sjoin(runtime, scene.points, scene.polygons));
  };
  return {calibration_case(kBoundsOfPoints, points,
                           [](runtime::Runtime& runtime, const SyntheticData& scene) {
                             return status_of(bounds(runtime, scene.points));
                           }),
          calibration_case(kBoundsOfPolygons, polygons,
                           [](runtime::Runtime& runtime, const SyntheticData& scene) {
                             return status_of(bounds(runtime, scene.polygons));
                           }),
          calibration_case(kWithin, one_polygon,
                           [](runtime::Runtime& runtime, const SyntheticData& scene) {
                             return status_of(within(runtime, scene.points, scene.polygons));
                           }),
          calibration_case(kSjoin, joined, join), calibration_case(kBoxJoin, rectangles, join)};
}

}  // namespace spatial
