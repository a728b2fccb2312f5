// SPDX-License-Identifier: Apache-2.0
#include "spatial/operations.hpp"

#include <algorithm>
#include <string>

#include "spatial/device/device_column.hpp"

namespace spatial {
namespace {

kiln::Error invalid(std::string message) { return {kiln::Code::InvalidArgument, std::move(message), {}}; }

template <class Rows>
runtime::DispatchRequest request_for(const Rows& rows) {
  return {rows.rows(), rows.device() != nullptr ? kiln::Residency::Device : kiln::Residency::Host, rows.backend()};
}

/// Returns an error unless both columns are at one location. The library never moves a column implicitly.
kiln::Status in_one_place(const Points& points, const Polygons& polygons) {
  if (points.backend() == polygons.backend()) return {};
  return invalid(std::string("the points are on ") + runtime::to_string(points.backend()) + " and the polygons on " +
                 runtime::to_string(polygons.backend()) + "; move them to one backend first");
}

void request(runtime::Runtime& runtime, const kiln::Requirements& on_opencl, const kiln::Requirements& on_cuda) {
  runtime.request(runtime::Backend::OpenCl, on_opencl);
  runtime.request(runtime::Backend::Cuda, on_cuda);
}

template <class Host, class Device>
kiln::Result<Host> on_the_host(runtime::Runtime& runtime, HostOrDevice<Host, Device> placed) {
  if (placed.device != nullptr) return materialize(runtime, *placed.device);
  return std::move(placed.host);
}

}  // namespace

bool only_rectangles(const Polygons& polygons) {
  return polygons.host() != nullptr ? all_rectangles(*polygons.host()) : polygons.device()->rectangles;
}

void open(runtime::Runtime& runtime, const PointColumn&) {
  request(runtime, opencl::point_column_requirements, cuda::point_column_requirements);
}
void open(runtime::Runtime& runtime, const PolygonColumn&) {
  request(runtime, opencl::polygon_column_requirements, cuda::polygon_column_requirements);
}

kiln::Result<Boxes> materialize(runtime::Runtime& runtime, PlacedBoxes boxes) {
  return on_the_host(runtime, std::move(boxes));
}

kiln::Result<Areas> materialize(runtime::Runtime& runtime, PlacedAreas areas) {
  return on_the_host(runtime, std::move(areas));
}

kiln::Result<Mask> materialize(runtime::Runtime& runtime, PlacedMask mask) {
  return on_the_host(runtime, std::move(mask));
}

kiln::Result<Pairs> materialize(runtime::Runtime& runtime, PlacedPairs pairs) {
  return on_the_host(runtime, std::move(pairs));
}

kiln::Result<WkbColumn> materialize(runtime::Runtime& runtime, PlacedWkb wkb) {
  return on_the_host(runtime, std::move(wkb));
}

kiln::Result<Dissolved> materialize(runtime::Runtime& runtime, PlacedDissolved dissolved) {
  return on_the_host(runtime, std::move(dissolved));
}

kiln::Error not_a_coverage() {
  return invalid(
      "dissolve failed: the polygons of a key are not a coverage: an edge occurs more than twice or twice in one "
      "direction, or edges do not close to rings; correct the polygons, or merge them by a union");
}

kiln::Result<PlacedBoxes> bounds(runtime::Runtime& runtime, const Points& points) {
  return runtime::run(runtime, kBoundsOfPoints, request_for(points), points);
}

kiln::Result<PlacedBoxes> bounds(runtime::Runtime& runtime, const Polygons& polygons) {
  return runtime::run(runtime, kBoundsOfPolygons, request_for(polygons), polygons);
}

kiln::Result<PlacedMask> within(runtime::Runtime& runtime, const Points& points, const Polygons& polygons) {
  if (kiln::Status status = in_one_place(points, polygons); !status) return status.error();
  if (polygons.rows() != points.rows() && polygons.rows() != 1) {
    return invalid("within takes as many polygons as points, or one; there are " + std::to_string(points.rows()) +
                   " points and " + std::to_string(polygons.rows()) + " polygons");
  }
  const bool boxes =
      runtime::find_rewrite(runtime, kRulesOfPointsAndPolygons, kWithin, points.rows(), points, polygons);
  return runtime::run(runtime, boxes ? kBoxWithin : kWithin, request_for(points), points, polygons);
}

kiln::Result<PlacedAreas> area(runtime::Runtime& runtime, const Polygons& polygons) {
  if (runtime::find_rewrite(runtime, kRulesOfPolygons, kArea, polygons.rows(), polygons) != nullptr) {
    return runtime::run(runtime, kBoxArea, request_for(polygons), polygons);
  }
  return runtime::run(runtime, kArea, request_for(polygons), polygons);
}

kiln::Result<PlacedPairs> sjoin(runtime::Runtime& runtime, const Points& points, const Polygons& polygons) {
  if (kiln::Status status = in_one_place(points, polygons); !status) return status.error();
  const bool boxes = runtime::find_rewrite(runtime, kRulesOfPointsAndPolygons, kSjoin, points.rows(), points, polygons);
  return runtime::run(runtime, boxes ? kBoxJoin : kSjoin, request_for(points), points, polygons);
}

kiln::Result<PlacedWkb> to_wkb(runtime::Runtime& runtime, const Points& points) {
  return runtime::run(runtime, kWkbOfPoints, request_for(points), points);
}

kiln::Result<PlacedWkb> to_wkb(runtime::Runtime& runtime, const Polygons& polygons) {
  return runtime::run(runtime, kWkbOfPolygons, request_for(polygons), polygons);
}

kiln::Result<PlacedDissolved> dissolve(runtime::Runtime& runtime, const Polygons& polygons, const Keys& keys) {
  if (polygons.backend() != keys.backend()) {
    return invalid(std::string("the polygons are on ") + runtime::to_string(polygons.backend()) + " and the keys on " +
                   runtime::to_string(keys.backend()) + "; move them to one backend first");
  }
  if (polygons.rows() != keys.rows()) {
    return invalid("dissolve takes one key per polygon; there are " + std::to_string(polygons.rows()) +
                   " polygons and " + std::to_string(keys.rows()) + " keys");
  }
  return runtime::run(runtime, kDissolve, request_for(polygons), polygons, keys);
}

}  // namespace spatial
