#pragma once

#include <memory>
#include <optional>

#include <kiln/runtime.hpp>

#include "spatial/device/device_column.hpp"

namespace spatial::device {

/// The operands of one dispatch on its device: those that are there already, and copies of those that are not. Refers
/// to the former, and does not keep them.
class Placing {
 public:
  static kiln::Result<Placing> of(runtime::Dispatch& dispatch, const Points* points, const Polygons* polygons);

  const DevicePoints& points() const { return points_ != nullptr ? *points_ : *own_points_; }
  const DevicePolygons& polygons() const { return polygons_ != nullptr ? *polygons_ : *own_polygons_; }
  /// Whether one of them was on the device before, so that the result stays there.
  bool stays() const { return points_ != nullptr || polygons_ != nullptr; }

 private:
  Placing() = default;

  const DevicePoints* points_ = nullptr;
  const DevicePolygons* polygons_ = nullptr;
  std::optional<DevicePoints> own_points_;
  std::optional<DevicePolygons> own_polygons_;
};

}  // namespace spatial::device
