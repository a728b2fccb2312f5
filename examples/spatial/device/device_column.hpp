// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <kiln/kernel.hpp>
#include <kiln/runtime.hpp>
#include <kiln/stream.hpp>

#include "spatial/column.hpp"
#include "spatial/device/device_context.hpp"
#include "spatial/operands.hpp"

namespace spatial {

/// Memory that several columns share: the boxes of a column share its validity bitmap.
using SharedBuffer = std::shared_ptr<const kiln::Buffer>;

/// The common part of all columns on a device.
class OnDevice {
 public:
  std::size_t rows() const { return rows_; }
  runtime::Backend backend() const { return kit_->backend(); }
  const std::shared_ptr<DeviceContext>& kit() const { return kit_; }

 protected:
  OnDevice(std::shared_ptr<DeviceContext> kit, std::size_t rows) : kit_(std::move(kit)), rows_(rows) {}

 private:
  std::shared_ptr<DeviceContext> kit_;
  std::size_t rows_;
};

/// A `PointColumn` on a device, in the same layout.
class DevicePoints : public OnDevice {
 public:
  DevicePoints(std::shared_ptr<DeviceContext> kit, std::size_t rows, SharedBuffer valid_rows, kiln::Buffer xs,
               kiln::Buffer ys)
      : OnDevice(std::move(kit), rows), valid(std::move(valid_rows)), x(std::move(xs)), y(std::move(ys)) {}
  SharedBuffer valid;
  kiln::Buffer x;
  kiln::Buffer y;
};

/// A `PolygonColumn` on a device, in the same layout.
class DevicePolygons : public OnDevice {
 public:
  struct Memory {
    SharedBuffer valid;
    kiln::Buffer rings;
    kiln::Buffer offsets;
    kiln::Buffer x;
    kiln::Buffer y;
    kiln::Buffer shells;
  };
  /// `only_rectangles` is the result of `all_rectangles` for the column on the host.
  DevicePolygons(std::shared_ptr<DeviceContext> kit, std::size_t rows, Memory memory, bool only_rectangles)
      : OnDevice(std::move(kit), rows), at(std::move(memory)), rectangles(only_rectangles) {}
  std::size_t ring_count() const { return at.offsets.size() / sizeof(std::int32_t) - 1; }
  std::size_t vertex_count() const { return at.x.size() / sizeof(double); }

  Memory at;
  bool rectangles;
};

/// A `KeyColumn` on a device.
class DeviceKeys : public OnDevice {
 public:
  DeviceKeys(std::shared_ptr<DeviceContext> kit, std::size_t rows, kiln::Buffer all_values)
      : OnDevice(std::move(kit), rows), values(std::move(all_values)) {}
  kiln::Buffer values;
};

/// A `WkbColumn` on a device, in the same layout.
class DeviceWkb : public OnDevice {
 public:
  struct Memory {
    SharedBuffer valid;
    kiln::Buffer offsets;
    kiln::Buffer bytes;
  };
  DeviceWkb(std::shared_ptr<DeviceContext> kit, std::size_t rows, Memory memory, std::size_t size)
      : OnDevice(std::move(kit), rows), at(std::move(memory)), byte_count(size) {}
  Memory at;
  std::size_t byte_count;
};

/// `Dissolved` on a device. `rows` is the number of distinct keys.
class DeviceDissolved : public OnDevice {
 public:
  DeviceDissolved(DeviceKeys all_keys, DevicePolygons all_polygons)
      : OnDevice(all_keys.kit(), all_keys.rows()), keys(std::move(all_keys)), polygons(std::move(all_polygons)) {}
  DeviceKeys keys;
  DevicePolygons polygons;
};

/// `Boxes` on a device: four columns of sides.
class DeviceBoxes : public OnDevice {
 public:
  DeviceBoxes(std::shared_ptr<DeviceContext> kit, std::size_t rows, SharedBuffer valid_rows, kiln::Buffer all_sides)
      : OnDevice(std::move(kit), rows), valid(std::move(valid_rows)), sides(std::move(all_sides)) {}
  SharedBuffer valid;
  kiln::Buffer sides;
};

/// `Areas` on a device.
class DeviceAreas : public OnDevice {
 public:
  DeviceAreas(std::shared_ptr<DeviceContext> kit, std::size_t rows, SharedBuffer valid_rows, kiln::Buffer all_values)
      : OnDevice(std::move(kit), rows), valid(std::move(valid_rows)), values(std::move(all_values)) {}
  SharedBuffer valid;
  kiln::Buffer values;
};

/// `Mask` on a device: two bitmaps.
class DeviceMask : public OnDevice {
 public:
  DeviceMask(std::shared_ptr<DeviceContext> kit, std::size_t rows, kiln::Buffer valid_rows, kiln::Buffer inside_rows)
      : OnDevice(std::move(kit), rows), valid(std::move(valid_rows)), inside(std::move(inside_rows)) {}
  kiln::Buffer valid;
  kiln::Buffer inside;
};

/// `Pairs` on a device, in the same layout as on the host. `rows` is the number of pairs.
class DevicePairs : public OnDevice {
 public:
  DevicePairs(std::shared_ptr<DeviceContext> kit, std::size_t rows, kiln::Buffer all_pairs)
      : OnDevice(std::move(kit), rows), pairs(std::move(all_pairs)) {}
  kiln::Buffer pairs;
};

/// Copies a column to the device of the kit. Columns used together in one operation must share one kit.
kiln::Result<DevicePoints> upload(runtime::Runtime& runtime, const std::shared_ptr<DeviceContext>& kit,
                                  const PointColumn& points);
kiln::Result<DevicePolygons> upload(runtime::Runtime& runtime, const std::shared_ptr<DeviceContext>& kit,
                                    const PolygonColumn& polygons);
kiln::Result<DeviceKeys> upload(runtime::Runtime& runtime, const std::shared_ptr<DeviceContext>& kit,
                                const KeyColumn& keys);

/// Copies a result to the host, after waiting for its computation. No other function copies results.
kiln::Result<Boxes> materialize(runtime::Runtime& runtime, const DeviceBoxes& boxes);
kiln::Result<Areas> materialize(runtime::Runtime& runtime, const DeviceAreas& areas);
kiln::Result<Mask> materialize(runtime::Runtime& runtime, const DeviceMask& mask);
kiln::Result<Pairs> materialize(runtime::Runtime& runtime, const DevicePairs& pairs);
kiln::Result<WkbColumn> materialize(runtime::Runtime& runtime, const DeviceWkb& wkb);
kiln::Result<Dissolved> materialize(runtime::Runtime& runtime, const DeviceDissolved& dissolved);

}  // namespace spatial
