// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include <kiln/result.hpp>
#include <kiln/runtime.hpp>

#include "spatial/column.hpp"

namespace spatial {

/// The same columns and results on a device: device/device_column.hpp. Each has `rows()` and `backend()`.
class DevicePoints;
class DevicePolygons;
class DeviceBoxes;
class DeviceAreas;
class DeviceMask;
class DevicePairs;
class DeviceKeys;
class DeviceWkb;
class DeviceDissolved;

namespace runtime = kiln::runtime;

/// A non-owning reference to a column on the host or on a device.
template <class Host, class Device>
class Operand {
 public:
  Operand(const Host& host) : host_(&host), rows_(host.rows()) {}  // NOLINT(google-explicit-constructor)
  Operand(const Device& device)                                    // NOLINT(google-explicit-constructor)
      : device_(&device), rows_(device.rows()), backend_(device.backend()) {}

  /// Exactly one of the two is null.
  const Host* host() const { return host_; }
  const Device* device() const { return device_; }
  std::size_t rows() const { return rows_; }
  runtime::Backend backend() const { return backend_; }

 private:
  const Host* host_ = nullptr;
  const Device* device_ = nullptr;
  std::size_t rows_;
  runtime::Backend backend_ = runtime::Backend::Cpu;
};
using Points = Operand<PointColumn, DevicePoints>;
using Polygons = Operand<PolygonColumn, DevicePolygons>;
using Keys = Operand<KeyColumn, DeviceKeys>;

/// A result at the location of its inputs. For columns on the host it is on the host, regardless of the backend. For
/// columns on a device it stays there until `materialize` is called.
template <class Host, class Device>
struct HostOrDevice {
  Host host;
  std::shared_ptr<const Device> device;  ///< null if the result is on the host

  HostOrDevice(Host value) : host(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  HostOrDevice(std::shared_ptr<const Device> value)
      : host(), device(std::move(value)) {}  // NOLINT(google-explicit-constructor)
};
using PlacedBoxes = HostOrDevice<Boxes, DeviceBoxes>;
using PlacedAreas = HostOrDevice<Areas, DeviceAreas>;
using PlacedMask = HostOrDevice<Mask, DeviceMask>;
using PlacedPairs = HostOrDevice<Pairs, DevicePairs>;
using PlacedWkb = HostOrDevice<WkbColumn, DeviceWkb>;
using PlacedDissolved = HostOrDevice<Dissolved, DeviceDissolved>;

/// The signatures of the variants of each operation.
using BoundsOfPoints = kiln::Result<PlacedBoxes>(runtime::Dispatch&, const Points&);
using BoundsOfPolygons = kiln::Result<PlacedBoxes>(runtime::Dispatch&, const Polygons&);
using AreaOfPolygons = kiln::Result<PlacedAreas>(runtime::Dispatch&, const Polygons&);
/// Takes as many polygons as points, or one for all points.
using Within = kiln::Result<PlacedMask>(runtime::Dispatch&, const Points&, const Polygons&);
using Sjoin = kiln::Result<PlacedPairs>(runtime::Dispatch&, const Points&, const Polygons&);
using WkbOfPoints = kiln::Result<PlacedWkb>(runtime::Dispatch&, const Points&);
using WkbOfPolygons = kiln::Result<PlacedWkb>(runtime::Dispatch&, const Polygons&);
/// Takes as many keys as polygons.
using Dissolve = kiln::Result<PlacedDissolved>(runtime::Dispatch&, const Polygons&, const Keys&);

/// The error of `dissolve` for polygons that are not a coverage, as far as it notices.
kiln::Error not_a_coverage();

}  // namespace spatial
