// SPDX-License-Identifier: Apache-2.0
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <bit>

#include "spatial/cpu/host_rows.hpp"
#include "spatial/cpu/variants.hpp"

namespace spatial::cpu {
namespace {

constexpr std::uint32_t kWkbPoint = 1;
constexpr std::uint32_t kWkbPolygon = 3;
constexpr std::uint32_t kWkbMultiPolygon = 6;
constexpr std::size_t kWkbHeader = 9;      // byte order, type, count
constexpr std::size_t kWkbPointSize = 21;  // byte order, type, two coordinates

/// Writes fields in little-endian byte order.
class WkbWriter {
 public:
  explicit WkbWriter(std::uint8_t* at) : at_(at) {}

  void type(std::uint32_t value) {
    *at_++ = 1;  // little-endian
    number(value);
  }
  void number(std::uint64_t value) { put(value, 4); }
  void coordinates(double x, double y) {
    put(std::bit_cast<std::uint64_t>(x), 8);
    put(std::bit_cast<std::uint64_t>(y), 8);
  }

 private:
  void put(std::uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i) *at_++ = static_cast<std::uint8_t>(value >> (8 * i));
  }
  std::uint8_t* at_;
};

std::size_t parts_of(const PolygonColumn& column, std::size_t row) {
  std::size_t parts = 0;
  for (std::int32_t ring = column.rings[row]; ring < column.rings[row + 1]; ++ring) parts += column.shells[ring];
  return parts;
}

std::size_t wkb_size(const PointColumn&, std::size_t) { return kWkbPointSize; }

std::size_t wkb_size(const PolygonColumn& column, std::size_t row) {
  const std::int32_t first = column.rings[row];
  const std::int32_t last = column.rings[row + 1];
  const std::size_t parts = parts_of(column, row);
  return kWkbHeader + (parts > 1 ? kWkbHeader * parts : 0) + 4 * static_cast<std::size_t>(last - first) +
         16 * static_cast<std::size_t>(column.offsets[last] - column.offsets[first]);
}

void write_wkb(const PointColumn& column, std::size_t row, WkbWriter wkb) {
  wkb.type(kWkbPoint);
  wkb.coordinates(column.x[row], column.y[row]);
}

void write_wkb(const PolygonColumn& column, std::size_t row, WkbWriter wkb) {
  const std::int32_t last = column.rings[row + 1];
  const std::size_t parts = parts_of(column, row);
  wkb.type(parts > 1 ? kWkbMultiPolygon : kWkbPolygon);
  wkb.number(parts > 1 ? parts : static_cast<std::size_t>(last - column.rings[row]));
  for (std::int32_t ring = column.rings[row]; ring < last; ++ring) {
    if (parts > 1 && column.shells[ring]) {
      std::int32_t next = ring + 1;
      while (next < last && !column.shells[next]) ++next;
      wkb.type(kWkbPolygon);
      wkb.number(static_cast<std::size_t>(next - ring));
    }
    wkb.number(static_cast<std::size_t>(column.offsets[ring + 1] - column.offsets[ring]));
    for (std::int32_t i = column.offsets[ring]; i < column.offsets[ring + 1]; ++i) {
      wkb.coordinates(column.x[i], column.y[i]);
    }
  }
}

template <class Column>
kiln::Result<PlacedWkb> wkb_of(runtime::Dispatch& dispatch, const Column& column) {
  using RowRange = tbb::blocked_range<std::size_t>;
  WkbColumn wkb;
  wkb.valid = column.valid;
  {
    runtime::Stage stage(dispatch, "sizes");
    std::uint64_t total = 0;
    wkb.offsets.resize(column.rows() + 1);
    for (std::size_t row = 0; row < column.rows(); ++row) {
      wkb.offsets[row] = static_cast<std::uint32_t>(total);
      if (!column.null(row)) total += wkb_size(column, row);
      if (total > kMaxRows) {
        return kiln::Error{
            kiln::Code::Unsupported, "the WKB has more than 2147483647 bytes; write the rows in parts", {}};
      }
    }
    wkb.offsets.back() = static_cast<std::uint32_t>(total);
    wkb.bytes.resize(total);
  }
  runtime::Stage stage(dispatch, "write");
  tbb::parallel_for(RowRange(0, column.rows(), 512), [&](const RowRange& range) {
    for (std::size_t row = range.begin(); row < range.end(); ++row) {
      if (!column.null(row)) write_wkb(column, row, WkbWriter(wkb.bytes.data() + wkb.offsets[row]));
    }
  });
  return PlacedWkb(std::move(wkb));
}

}  // namespace

kiln::Result<PlacedWkb> wkb_of_points(runtime::Dispatch& dispatch, const Points& points) {
  if (kiln::Status status = on_host(points); !status) return status.error();
  return wkb_of(dispatch, *points.host());
}

kiln::Result<PlacedWkb> wkb_of_polygons(runtime::Dispatch& dispatch, const Polygons& polygons) {
  if (kiln::Status status = on_host(polygons); !status) return status.error();
  return wkb_of(dispatch, *polygons.host());
}

}  // namespace spatial::cpu
