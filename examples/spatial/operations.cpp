#include "spatial/operations.hpp"

#include <string>

#include "spatial/device/device_column.hpp"

namespace spatial {
namespace {

kiln::Error invalid(std::string message) { return {kiln::Code::InvalidArgument, std::move(message), {}}; }

template <class Rows>
runtime::Request request_for(const Rows& rows) {
  return {rows.rows(), rows.device() != nullptr ? kiln::Residency::Device : kiln::Residency::Host, rows.backend()};
}

/// Nothing is moved behind the caller's back, and so both have to be in one place.
kiln::Status in_one_place(const Points& points, const Polygons& polygons) {
  if (points.backend() == polygons.backend()) return {};
  return invalid(std::string("the points are on ") + runtime::to_string(points.backend()) + " and the polygons on " +
                 runtime::to_string(polygons.backend()) + "; bring them to one place first");
}

}  // namespace

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
  return runtime::run(runtime, kWithin, request_for(points), points, polygons);
}

kiln::Result<PlacedPairs> sjoin(runtime::Runtime& runtime, const Points& points, const Polygons& polygons) {
  if (kiln::Status status = in_one_place(points, polygons); !status) return status.error();
  const bool rectangles = polygons.host() != nullptr ? all_rectangles(*polygons.host()) : polygons.device()->rectangles;
  if (rectangles && runtime.apply(kJoinOfBoxes, points.rows())) {
    return runtime::run(runtime, kBoxJoin, request_for(points), points, polygons);
  }
  return runtime::run(runtime, kSjoin, request_for(points), points, polygons);
}

}  // namespace spatial
