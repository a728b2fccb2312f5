// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include <kiln/runtime.hpp>

#include "spatial/device/device_column.hpp"

namespace spatial::device {

/// The operands of one dispatch on its device: references to those that are already there, and copies of the others.
/// Does not own the former.
class DeviceOperands {
 public:
  static kiln::Result<DeviceOperands> of(runtime::Dispatch& dispatch, const Points* points, const Polygons* polygons);

  const DevicePoints& points() const { return points_ != nullptr ? *points_ : *own_points_; }
  const DevicePolygons& polygons() const { return polygons_ != nullptr ? *polygons_ : *own_polygons_; }
  /// Returns whether an operand was already on the device. If so, the result stays there.
  bool stays() const { return points_ != nullptr || polygons_ != nullptr; }

 private:
  DeviceOperands() = default;

  const DevicePoints* points_ = nullptr;
  const DevicePolygons* polygons_ = nullptr;
  std::optional<DevicePoints> own_points_;
  std::optional<DevicePolygons> own_polygons_;
};

}  // namespace spatial::device
