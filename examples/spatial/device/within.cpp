// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "spatial/device/pipeline.hpp"

namespace spatial::device {
namespace {

std::int32_t number(std::size_t rows) { return static_cast<std::int32_t>(rows); }
std::size_t words(std::size_t rows) { return (rows + 31) / 32; }

// Temporary buffers of `within`.
struct Scratch {
  std::optional<kiln::Buffer> sides;
  std::optional<kiln::Buffer> flags;
  std::optional<kiln::Buffer> chosen;  // rows that pass the filter
  std::optional<kiln::Buffer> count;   // number of rows in chosen
  std::optional<kiln::Buffer> valid;
  std::optional<kiln::Buffer> inside;

  kiln::Status allocate(const DeviceContext& kit, std::size_t rows, std::size_t polygon_rows) {
    kiln::Status done = kit.allocate(4 * sizeof(double) * polygon_rows, sides);
    if (done) done = kit.allocate(rows, flags);
    if (done) done = kit.allocate(rows * sizeof(std::uint32_t), chosen);
    if (done) done = kit.allocate(sizeof(std::uint32_t), count);
    if (done) done = kit.allocate(words(rows) * sizeof(std::uint32_t), valid);
    if (done) done = kit.allocate(words(rows) * sizeof(std::uint32_t), inside);
    return done;
  }
};

}  // namespace

kiln::Result<DeviceBoxes> bounds(runtime::Dispatch& dispatch, const DevicePoints& points) {
  DeviceContext& kit = *points.kit();
  const runtime::Stage stage(dispatch, "bounds", &kit.stream());
  auto sides = kit.allocate(4 * sizeof(double) * points.rows());
  if (!sides) return std::move(sides).error();
  kiln::Status launched =
      kit.launch("point_bounds", points.rows(), number(points.rows()), *points.valid, points.x, points.y, *sides);
  if (!launched) return std::move(launched).error();
  return DeviceBoxes(points.kit(), points.rows(), points.valid, *std::move(sides));
}

kiln::Status launch_bounds(const DevicePolygons& polygons, const kiln::Buffer& sides) {
  const auto& at = polygons.at;
  return polygons.kit()->launch("polygon_bounds", polygons.rows(), number(polygons.rows()), *at.valid, at.rings,
                                at.offsets, at.x, at.y, sides);
}

kiln::Result<DeviceBoxes> bounds(runtime::Dispatch& dispatch, const DevicePolygons& polygons) {
  DeviceContext& kit = *polygons.kit();
  const runtime::Stage stage(dispatch, "bounds", &kit.stream());
  auto sides = kit.allocate(4 * sizeof(double) * polygons.rows());
  if (!sides) return std::move(sides).error();
  if (kiln::Status launched = launch_bounds(polygons, *sides); !launched) return std::move(launched).error();
  return DeviceBoxes(polygons.kit(), polygons.rows(), polygons.at.valid, *std::move(sides));
}

kiln::Result<DeviceMask> within(runtime::Dispatch& dispatch, const DevicePoints& points,
                                const DevicePolygons& polygons) {
  DeviceContext& kit = *points.kit();
  const std::size_t rows = points.rows();
  const std::int32_t stride = polygons.rows() == rows ? 1 : 0;
  const auto& at = polygons.at;
  Scratch own;
  kiln::Status done = own.allocate(kit, rows, polygons.rows());
  if (done && rows != 0) {
    const runtime::Stage stage(dispatch, "bounds", &kit.stream());
    done = launch_bounds(polygons, *own.sides);
  }
  if (done && rows != 0) {
    const runtime::Stage stage(dispatch, "filter", &kit.stream());
    done = kit.launch("within_filter", words(rows), number(rows), stride, *points.valid, points.x, points.y,
                      number(polygons.rows()), *at.valid, *own.sides, *own.valid, *own.inside, *own.flags);
  }
  if (done && rows != 0) {
    const runtime::Stage stage(dispatch, "compaction", &kit.stream());
    done = kit.primitives().compact(*own.flags, static_cast<std::uint32_t>(rows), *own.chosen, *own.count);
  }
  if (done && rows != 0) {
    const runtime::Stage stage(dispatch, "refine", &kit.stream());
    done = kit.launch("within_refine", rows, *own.count, *own.chosen, stride, points.x, points.y, at.rings, at.offsets,
                      at.x, at.y, *own.inside);
  }
  if (!done) return std::move(done).error();
  return DeviceMask(points.kit(), rows, *std::move(own.valid), *std::move(own.inside));
}

kiln::Result<DeviceMask> box_within(runtime::Dispatch& dispatch, const DevicePoints& points,
                                    const DevicePolygons& polygons) {
  DeviceContext& kit = *points.kit();
  const std::size_t rows = points.rows();
  const std::int32_t stride = polygons.rows() == rows ? 1 : 0;
  std::optional<kiln::Buffer> sides;
  std::optional<kiln::Buffer> valid;
  std::optional<kiln::Buffer> inside;
  kiln::Status done = kit.allocate(4 * sizeof(double) * polygons.rows(), sides);
  if (done) done = kit.allocate(words(rows) * sizeof(std::uint32_t), valid);
  if (done) done = kit.allocate(words(rows) * sizeof(std::uint32_t), inside);
  if (done && rows != 0) {
    const runtime::Stage stage(dispatch, "bounds", &kit.stream());
    done = launch_bounds(polygons, *sides);
  }
  if (done && rows != 0) {
    const runtime::Stage stage(dispatch, "filter", &kit.stream());
    done = kit.launch("box_within", words(rows), number(rows), stride, *points.valid, points.x, points.y,
                      number(polygons.rows()), *polygons.at.valid, *sides, *valid, *inside);
  }
  if (!done) return std::move(done).error();
  return DeviceMask(points.kit(), rows, *std::move(valid), *std::move(inside));
}

}  // namespace spatial::device
