// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <optional>
#include <utility>

#include "spatial/device/pipeline.hpp"

namespace spatial::device {
namespace {

// The places of the rows, the number of bytes, and the bytes.
struct WkbBuffers {
  std::optional<kiln::Buffer> places;  // sizes of the rows, then their places
  std::optional<kiln::Buffer> size;
  std::optional<kiln::Buffer> bytes;
  std::uint32_t byte_count = 0;

  kiln::Status allocate(const DeviceContext& kit, std::size_t rows) {
    kiln::Status done = kit.allocate((rows + 1) * sizeof(std::uint32_t), places);
    if (done) done = kit.allocate(sizeof(std::uint32_t), size);
    return done;
  }

  // Replaces the sizes by the places and allocates the bytes.
  kiln::Status place(runtime::Dispatch& dispatch, DeviceContext& kit, std::size_t rows) {
    const runtime::Stage stage(dispatch, "places", &kit.stream());
    kiln::Status done = kit.primitives().exclusive_scan(*places, static_cast<std::uint32_t>(rows), *places, *size);
    if (done) {
      const runtime::Transfer transfer(dispatch.runtime(), kiln::Purpose::AllocationSize);
      done = kit.stream().download(&byte_count, *size, sizeof byte_count);
    }
    if (done && byte_count > static_cast<std::uint32_t>(std::numeric_limits<std::int32_t>::max())) {
      return kiln::Error{
          kiln::Code::Unsupported, "the WKB has more than 2147483647 bytes; write the rows in parts", {}};
    }
    if (done) done = kit.allocate(byte_count, bytes);
    return done;
  }

  DeviceWkb result(const OnDevice& column, SharedBuffer valid) && {
    return {column.kit(), column.rows(), {std::move(valid), *std::move(places), *std::move(bytes)}, byte_count};
  }
};

}  // namespace

kiln::Result<DeviceWkb> to_wkb(runtime::Dispatch& dispatch, const DevicePoints& points) {
  DeviceContext& kit = *points.kit();
  const auto rows = static_cast<std::int32_t>(points.rows());
  WkbBuffers own;
  kiln::Status done = own.allocate(kit, points.rows());
  if (done) {
    const runtime::Stage stage(dispatch, "sizes", &kit.stream());
    done = kit.launch("wkb_point_sizes", points.rows(), rows, *points.valid, *own.places);
  }
  if (done) done = own.place(dispatch, kit, points.rows());
  if (done) {
    const runtime::Stage stage(dispatch, "write", &kit.stream());
    done = kit.launch("wkb_points", points.rows(), rows, *points.valid, points.x, points.y, *own.places, *own.bytes);
  }
  if (!done) return std::move(done).error();
  return std::move(own).result(points, points.valid);
}

kiln::Result<DeviceWkb> to_wkb(runtime::Dispatch& dispatch, const DevicePolygons& polygons) {
  DeviceContext& kit = *polygons.kit();
  const auto& at = polygons.at;
  const auto rows = static_cast<std::int32_t>(polygons.rows());
  const auto rings = static_cast<std::uint32_t>(polygons.ring_count());
  const auto vertices = static_cast<std::uint32_t>(polygons.vertex_count());
  std::optional<kiln::Buffer> parts;   // number of shells before each ring
  std::optional<kiln::Buffer> starts;  // place of the first coordinate of each ring
  WkbBuffers own;
  kiln::Status done = own.allocate(kit, polygons.rows());
  if (done) done = kit.allocate((std::size_t{rings} + 1) * sizeof(std::uint32_t), parts);
  if (done) done = kit.allocate(rings * sizeof(std::uint32_t), starts);
  if (done) {
    const runtime::Stage stage(dispatch, "sizes", &kit.stream());
    done = kit.launch("wkb_shells", rings, rings, at.shells, *parts);
    if (done) done = kit.primitives().exclusive_scan(*parts, rings, *parts, *own.size);
    if (done) {
      done =
          kit.launch("wkb_polygon_sizes", polygons.rows(), rows, *at.valid, at.rings, at.offsets, *parts, *own.places);
    }
  }
  if (done) done = own.place(dispatch, kit, polygons.rows());
  if (done) {
    const runtime::Stage stage(dispatch, "write", &kit.stream());
    done = kit.launch("wkb_rows", polygons.rows(), rows, *at.valid, at.rings, *parts, *own.places, *own.bytes);
    if (done) {
      done =
          kit.launch("wkb_rings", rings, rings, rows, at.rings, at.offsets, *parts, *own.places, *own.bytes, *starts);
    }
    if (done) done = kit.launch("wkb_vertices", vertices, vertices, rings, at.offsets, *starts, at.x, at.y, *own.bytes);
  }
  if (!done) return std::move(done).error();
  return std::move(own).result(polygons, at.valid);
}

}  // namespace spatial::device
