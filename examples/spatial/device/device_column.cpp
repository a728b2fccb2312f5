// SPDX-License-Identifier: Apache-2.0
#include "spatial/device/device_column.hpp"

#include <optional>
#include <vector>

namespace spatial {
namespace {

static_assert(sizeof(Pair) == 8, "pairs must have the same layout on host and device");

// Copies vectors to the device, up to the first failure.
class Uploads {
 public:
  explicit Uploads(const DeviceContext& kit) : kit_(kit) {}

  template <class T>
  std::optional<kiln::Buffer> copy(const std::vector<T>& from) {
    if (!status) return std::nullopt;
    auto made = kit_.copy_of(from.data(), from.size() * sizeof(T));
    if (made) return *std::move(made);
    status = std::move(made).error();
    return std::nullopt;
  }

  kiln::Status status;

 private:
  const DeviceContext& kit_;
};

template <class T>
kiln::Status copy_out(runtime::Transfer& transfer, const OnDevice& from, const kiln::Buffer& memory,
                      std::vector<T>& to) {
  const std::size_t bytes = to.size() * sizeof(T);
  if (bytes == 0) return {};
  transfer.add_bytes(bytes);
  return from.kit()->stream().download(to.data(), memory, bytes);
}

SharedBuffer shared(std::optional<kiln::Buffer> buffer) {
  return std::make_shared<const kiln::Buffer>(*std::move(buffer));
}

kiln::Error too_many(const char* what) {
  return {kiln::Code::InvalidArgument, std::string("more than 2147483647 ") + what + " in one column; split it", {}};
}

}  // namespace

kiln::Result<DevicePoints> upload(runtime::Runtime& runtime, const std::shared_ptr<DeviceContext>& kit,
                                  const PointColumn& points) {
  if (points.rows() > kMaxRows) return too_many("rows");
  const runtime::Transfer transfer(runtime, kiln::Purpose::Input);
  Uploads uploads(*kit);
  auto valid = uploads.copy(points.valid.words());
  auto x = uploads.copy(points.x);
  auto y = uploads.copy(points.y);
  if (!uploads.status) return std::move(uploads.status).error();
  return DevicePoints(kit, points.rows(), shared(std::move(valid)), *std::move(x), *std::move(y));
}

kiln::Result<DevicePolygons> upload(runtime::Runtime& runtime, const std::shared_ptr<DeviceContext>& kit,
                                    const PolygonColumn& polygons) {
  if (polygons.rows() > kMaxRows) return too_many("rows");
  if (polygons.x.size() > kMaxRows) return too_many("vertices");
  const runtime::Transfer transfer(runtime, kiln::Purpose::Input);
  Uploads uploads(*kit);
  auto valid = uploads.copy(polygons.valid.words());
  auto rings = uploads.copy(polygons.rings);
  auto offsets = uploads.copy(polygons.offsets);
  auto x = uploads.copy(polygons.x);
  auto y = uploads.copy(polygons.y);
  auto shells = uploads.copy(polygons.shells.words());
  if (!uploads.status) return std::move(uploads.status).error();
  return DevicePolygons(kit, polygons.rows(),
                        {shared(std::move(valid)), *std::move(rings), *std::move(offsets), *std::move(x), *std::move(y),
                         *std::move(shells)},
                        all_rectangles(polygons));
}

kiln::Result<DeviceKeys> upload(runtime::Runtime& runtime, const std::shared_ptr<DeviceContext>& kit,
                                const KeyColumn& keys) {
  if (keys.rows() > kMaxRows) return too_many("rows");
  const runtime::Transfer transfer(runtime, kiln::Purpose::Input);
  Uploads uploads(*kit);
  auto values = uploads.copy(keys.values);
  if (!uploads.status) return std::move(uploads.status).error();
  return DeviceKeys(kit, keys.rows(), *std::move(values));
}

kiln::Result<Boxes> materialize(runtime::Runtime& runtime, const DeviceBoxes& boxes) {
  runtime::Transfer transfer(runtime, kiln::Purpose::Materialize);
  Boxes host;
  host.sides.resize(4 * boxes.rows());
  host.valid = Bitmap(boxes.rows(), false);
  kiln::Status copied = copy_out(transfer, boxes, boxes.sides, host.sides);
  if (copied) copied = copy_out(transfer, boxes, *boxes.valid, host.valid.words());
  if (!copied) return std::move(copied).error();
  return host;
}

kiln::Result<Areas> materialize(runtime::Runtime& runtime, const DeviceAreas& areas) {
  runtime::Transfer transfer(runtime, kiln::Purpose::Materialize);
  Areas host{std::vector<double>(areas.rows()), Bitmap(areas.rows(), false)};
  kiln::Status copied = copy_out(transfer, areas, areas.values, host.values);
  if (copied) copied = copy_out(transfer, areas, *areas.valid, host.valid.words());
  if (!copied) return std::move(copied).error();
  return host;
}

kiln::Result<Mask> materialize(runtime::Runtime& runtime, const DeviceMask& mask) {
  runtime::Transfer transfer(runtime, kiln::Purpose::Materialize);
  Mask host{Bitmap(mask.rows(), false), Bitmap(mask.rows(), false)};
  kiln::Status copied = copy_out(transfer, mask, mask.inside, host.inside.words());
  if (copied) copied = copy_out(transfer, mask, mask.valid, host.valid.words());
  if (!copied) return std::move(copied).error();
  return host;
}

kiln::Result<Pairs> materialize(runtime::Runtime& runtime, const DevicePairs& pairs) {
  runtime::Transfer transfer(runtime, kiln::Purpose::Materialize);
  Pairs host(pairs.rows());
  if (kiln::Status copied = copy_out(transfer, pairs, pairs.pairs, host); !copied) return std::move(copied).error();
  return host;
}

kiln::Result<WkbColumn> materialize(runtime::Runtime& runtime, const DeviceWkb& wkb) {
  runtime::Transfer transfer(runtime, kiln::Purpose::Materialize);
  WkbColumn host;
  host.bytes.resize(wkb.byte_count);
  host.offsets.resize(wkb.rows() + 1);
  host.valid = Bitmap(wkb.rows(), false);
  kiln::Status copied = copy_out(transfer, wkb, wkb.at.bytes, host.bytes);
  if (copied) copied = copy_out(transfer, wkb, wkb.at.offsets, host.offsets);
  if (copied) copied = copy_out(transfer, wkb, *wkb.at.valid, host.valid.words());
  if (!copied) return std::move(copied).error();
  return host;
}

kiln::Result<Dissolved> materialize(runtime::Runtime& runtime, const DeviceDissolved& dissolved) {
  runtime::Transfer transfer(runtime, kiln::Purpose::Materialize);
  const DevicePolygons& from = dissolved.polygons;
  Dissolved host;
  host.keys.values.resize(dissolved.rows());
  PolygonColumn& to = host.polygons;
  to.rings.resize(dissolved.rows() + 1);
  to.offsets.resize(from.ring_count() + 1);
  to.x.resize(from.vertex_count());
  to.y.resize(from.vertex_count());
  to.valid = Bitmap(dissolved.rows(), false);
  to.shells = Bitmap(from.ring_count(), false);
  kiln::Status copied = copy_out(transfer, dissolved, dissolved.keys.values, host.keys.values);
  if (copied) copied = copy_out(transfer, dissolved, from.at.rings, to.rings);
  if (copied) copied = copy_out(transfer, dissolved, from.at.offsets, to.offsets);
  if (copied) copied = copy_out(transfer, dissolved, from.at.x, to.x);
  if (copied) copied = copy_out(transfer, dissolved, from.at.y, to.y);
  if (copied) copied = copy_out(transfer, dissolved, *from.at.valid, to.valid.words());
  if (copied) copied = copy_out(transfer, dissolved, from.at.shells, to.shells.words());
  if (!copied) return std::move(copied).error();
  return host;
}

}  // namespace spatial
