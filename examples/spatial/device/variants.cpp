// SPDX-License-Identifier: Apache-2.0
#include "spatial/device/variants.hpp"

#include <memory>
#include <utility>

#include "spatial/device/device_operands.hpp"
#include "spatial/device/pipeline.hpp"

namespace spatial::device {
namespace {

// Leaves the result on the device if an operand was there; otherwise copies it to the host.
template <class Placed, class Device>
kiln::Result<Placed> placed(runtime::Dispatch& dispatch, const DeviceOperands& placing, kiln::Result<Device> result) {
  if (!result) return std::move(result).error();
  if (placing.stays()) return Placed(std::make_shared<const Device>(*std::move(result)));
  auto host = materialize(dispatch.runtime(), *result);
  if (!host) return std::move(host).error();
  return Placed(*std::move(host));
}

kiln::Result<PlacedPairs> joined(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons,
                                 Refinement refinement) {
  const auto placing = DeviceOperands::of(dispatch, &points, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedPairs>(dispatch, *placing, join(dispatch, placing->points(), placing->polygons(), refinement));
}

kiln::Result<PlacedAreas> areas(runtime::Dispatch& dispatch, const Polygons& polygons, runtime::Precision precision) {
  const auto placing = DeviceOperands::of(dispatch, nullptr, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedAreas>(dispatch, *placing, area(dispatch, placing->polygons(), precision));
}

}  // namespace

kiln::Result<PlacedBoxes> bounds_of_points(runtime::Dispatch& dispatch, const Points& points) {
  const auto placing = DeviceOperands::of(dispatch, &points, nullptr);
  if (!placing) return placing.error();
  return placed<PlacedBoxes>(dispatch, *placing, bounds(dispatch, placing->points()));
}

kiln::Result<PlacedBoxes> bounds_of_polygons(runtime::Dispatch& dispatch, const Polygons& polygons) {
  const auto placing = DeviceOperands::of(dispatch, nullptr, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedBoxes>(dispatch, *placing, bounds(dispatch, placing->polygons()));
}

kiln::Result<PlacedMask> within(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  const auto placing = DeviceOperands::of(dispatch, &points, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedMask>(dispatch, *placing, within(dispatch, placing->points(), placing->polygons()));
}

kiln::Result<PlacedMask> box_within(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  const auto placing = DeviceOperands::of(dispatch, &points, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedMask>(dispatch, *placing, box_within(dispatch, placing->points(), placing->polygons()));
}

kiln::Result<PlacedAreas> area_in_fp64(runtime::Dispatch& dispatch, const Polygons& polygons) {
  return areas(dispatch, polygons, runtime::Precision::Fp64);
}

kiln::Result<PlacedAreas> area_in_fp32(runtime::Dispatch& dispatch, const Polygons& polygons) {
  return areas(dispatch, polygons, runtime::Precision::Fp32);
}

kiln::Result<PlacedAreas> box_area(runtime::Dispatch& dispatch, const Polygons& polygons) {
  const auto placing = DeviceOperands::of(dispatch, nullptr, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedAreas>(dispatch, *placing, box_area(dispatch, placing->polygons()));
}

kiln::Result<PlacedPairs> sjoin(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  return joined(dispatch, points, polygons, Refinement::Exact);
}

kiln::Result<PlacedPairs> box_join(runtime::Dispatch& dispatch, const Points& points, const Polygons& polygons) {
  return joined(dispatch, points, polygons, Refinement::None);
}

kiln::Result<PlacedWkb> wkb_of_points(runtime::Dispatch& dispatch, const Points& points) {
  const auto placing = DeviceOperands::of(dispatch, &points, nullptr);
  if (!placing) return placing.error();
  return placed<PlacedWkb>(dispatch, *placing, to_wkb(dispatch, placing->points()));
}

kiln::Result<PlacedWkb> wkb_of_polygons(runtime::Dispatch& dispatch, const Polygons& polygons) {
  const auto placing = DeviceOperands::of(dispatch, nullptr, &polygons);
  if (!placing) return placing.error();
  return placed<PlacedWkb>(dispatch, *placing, to_wkb(dispatch, placing->polygons()));
}

kiln::Result<PlacedDissolved> dissolve(runtime::Dispatch& dispatch, const Polygons& polygons, const Keys& keys) {
  const auto placing = DeviceOperands::of(dispatch, nullptr, &polygons);
  if (!placing) return placing.error();
  const std::shared_ptr<DeviceContext>& kit = placing->polygons().kit();
  if (keys.device() != nullptr) {
    if (keys.device()->kit() != kit) {
      return kiln::Error{kiln::Code::InvalidArgument, "two columns on a device must share one kit", {}};
    }
    return placed<PlacedDissolved>(dispatch, *placing, dissolve(dispatch, placing->polygons(), *keys.device()));
  }
  const auto copied = upload(dispatch.runtime(), kit, *keys.host());
  if (!copied) return copied.error();
  return placed<PlacedDissolved>(dispatch, *placing, dissolve(dispatch, placing->polygons(), *copied));
}

}  // namespace spatial::device
