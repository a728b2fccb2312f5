// SPDX-License-Identifier: Apache-2.0
#include "spatial/device/device_operands.hpp"

#include <string>
#include <utility>

namespace spatial::device {
namespace {

// Returns the kit of the operands that are on a device, or a new kit.
kiln::Result<std::shared_ptr<DeviceContext>> kit_of(runtime::Dispatch& dispatch, const DevicePoints* points,
                                                    const DevicePolygons* polygons) {
  const runtime::Backend backend = dispatch.decision().selected;
  for (const OnDevice* column : {static_cast<const OnDevice*>(points), static_cast<const OnDevice*>(polygons)}) {
    if (column == nullptr || column->backend() == backend) continue;
    return kiln::Error{kiln::Code::InvalidArgument,
                       std::string("a column is on ") + to_string(column->backend()) + " and the operation on " +
                           to_string(backend) + "; materialize it first",
                       {}};
  }
  if (points != nullptr && polygons != nullptr && points->kit() != polygons->kit()) {
    return kiln::Error{kiln::Code::InvalidArgument, "two columns on a device must share one kit", {}};
  }
  if (points != nullptr) return points->kit();
  if (polygons != nullptr) return polygons->kit();
  return DeviceContext::open(dispatch.runtime().session(), backend);
}

}  // namespace

kiln::Result<DeviceOperands> DeviceOperands::of(runtime::Dispatch& dispatch, const Points* points,
                                                const Polygons* polygons) {
  DeviceOperands placing;
  if (points != nullptr) placing.points_ = points->device();
  if (polygons != nullptr) placing.polygons_ = polygons->device();
  const auto kit = kit_of(dispatch, placing.points_, placing.polygons_);
  if (!kit) return kit.error();
  if (points != nullptr && points->host() != nullptr) {
    auto made = upload(dispatch.runtime(), *kit, *points->host());
    if (!made) return std::move(made).error();
    placing.own_points_.emplace(*std::move(made));
  }
  if (polygons != nullptr && polygons->host() != nullptr) {
    auto made = upload(dispatch.runtime(), *kit, *polygons->host());
    if (!made) return std::move(made).error();
    placing.own_polygons_.emplace(*std::move(made));
  }
  return placing;
}

}  // namespace spatial::device
