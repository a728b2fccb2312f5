#include "spatial/device/variants.hpp"

#include <memory>
#include <utility>

#include "spatial/device/pipeline.hpp"
#include "spatial/device/placing.hpp"

namespace spatial::device {
namespace {

// Leaves a result on the device where its operands were, or brings it to where they were.
template <class Placed, class Device>
kiln::Result<Placed> placed(runtime::Dispatch& dispatch, const Placing& placing, kiln::Result<Device> result) {
  if (!result) return std::move(result).error();
  if (placing.stays()) return Placed(std::make_shared<const Device>(*std::move(result)));
  auto host = materialise(dispatch.runtime(), *result);
  if (!host) return std::move(host).error();
  return Placed(*std::move(host));
}

kiln::Result<PlacedPairs> joined(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons,
                                 Refinement refinement) {
  const auto placing = Placing::of(dispatch, &points, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedPairs>(dispatch, *placing, join(dispatch, placing->points(), placing->polygons(), refinement));
}

}  // namespace

kiln::Result<PlacedBoxes> bounds_of_points(runtime::Dispatch& dispatch, const Points& points) {
  const auto placing = Placing::of(dispatch, &points, nullptr);
  if (!placing) return placing.error();
  return placed<PlacedBoxes>(dispatch, *placing, bounds(dispatch, placing->points()));
}

kiln::Result<PlacedBoxes> bounds_of_polygons(runtime::Dispatch& dispatch, const Polygons& polygons) {
  const auto placing = Placing::of(dispatch, nullptr, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedBoxes>(dispatch, *placing, bounds(dispatch, placing->polygons()));
}

kiln::Result<PlacedMask> within(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  const auto placing = Placing::of(dispatch, &points, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedMask>(dispatch, *placing, within(dispatch, placing->points(), placing->polygons()));
}

kiln::Result<PlacedPairs> sjoin(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  return joined(dispatch, points, polygons, Refinement::Exact);
}

kiln::Result<PlacedPairs> box_join(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  return joined(dispatch, points, polygons, Refinement::None);
}

}  // namespace spatial::device
