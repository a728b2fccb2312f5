// SPDX-License-Identifier: Apache-2.0
#define GEOS_USE_ONLY_R_API
#include <geos_c.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "spatial/column.hpp"

namespace spatial {
namespace {

struct FreeContext {
  void operator()(GEOSContextHandle_t context) const { GEOS_finish_r(context); }
};

/// GEOS's WKB reader and its last message.
class Reader {
 public:
  using Geometry = std::unique_ptr<GEOSGeometry, std::function<void(GEOSGeometry*)>>;

  Reader() : context_(GEOS_init_r()) {
    GEOSContext_setErrorMessageHandler_r(context_.get(), &keep_message, &message_);
    reader_ = {GEOSWKBReader_create_r(context_.get()),
               [this](GEOSWKBReader* reader) { GEOSWKBReader_destroy_r(context_.get(), reader); }};
  }

  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  Geometry read(const std::string& wkb) {
    message_.clear();
    GEOSGeometry* geometry = GEOSWKBReader_read_r(context_.get(), reader_.get(),
                                                  reinterpret_cast<const unsigned char*>(wkb.data()), wkb.size());
    return {geometry, [this](GEOSGeometry* given) { GEOSGeom_destroy_r(context_.get(), given); }};
  }
  GEOSContextHandle_t context() const { return context_.get(); }
  const std::string& message() const { return message_; }

 private:
  static void keep_message(const char* text, void* message) { *static_cast<std::string*>(message) = text; }

  std::string message_;
  std::unique_ptr<std::remove_pointer_t<GEOSContextHandle_t>, FreeContext> context_;
  std::unique_ptr<GEOSWKBReader, std::function<void(GEOSWKBReader*)>> reader_;
};

kiln::Error bad_row(std::size_t row, const std::string& what) {
  return {kiln::Code::InvalidArgument, "row " + std::to_string(row) + " " + what, {}};
}

kiln::Error other_family(Reader& reader, std::size_t row, const GEOSGeometry* geometry, const char* wanted) {
  const std::unique_ptr<char, std::function<void(char*)>> type(GEOSGeomType_r(reader.context(), geometry),
                                                               [&](char* text) { GEOSFree_r(reader.context(), text); });
  return bad_row(
      row, std::string("is a ") + (type ? type.get() : "geometry of unknown type") + "; this column takes " + wanted);
}

/// Appends the coordinates of a point or a ring.
kiln::Status append_coordinates(Reader& reader, std::size_t row, const GEOSGeometry* geometry, std::vector<double>& x,
                                std::vector<double>& y) {
  const GEOSCoordSequence* sequence = GEOSGeom_getCoordSeq_r(reader.context(), geometry);
  unsigned size = 0;
  if (sequence == nullptr || GEOSCoordSeq_getSize_r(reader.context(), sequence, &size) == 0) {
    return bad_row(row, "has no coordinates that GEOS can read: " + reader.message());
  }
  const std::size_t before = x.size();
  if (size > kMaxRows - before) return bad_row(row, "exceeds the maximum of 2^31 - 1 vertices in a column");
  x.resize(before + size);
  y.resize(before + size);
  if (GEOSCoordSeq_copyToArrays_r(reader.context(), sequence, x.data() + before, y.data() + before, nullptr, nullptr) ==
      0) {
    return bad_row(row, "has no coordinates that GEOS can read: " + reader.message());
  }
  for (std::size_t i = before; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return bad_row(row, "has a coordinate that is not finite");
  }
  return {};
}

kiln::Status append_rings(Reader& reader, std::size_t row, const GEOSGeometry* polygon, PolygonColumn& column) {
  if (GEOSisEmpty_r(reader.context(), polygon) != 0) return {};
  const int holes = GEOSGetNumInteriorRings_r(reader.context(), polygon);
  for (int ring = -1; ring < holes; ++ring) {
    const GEOSGeometry* geometry = ring < 0 ? GEOSGetExteriorRing_r(reader.context(), polygon)
                                            : GEOSGetInteriorRingN_r(reader.context(), polygon, ring);
    if (geometry == nullptr) return bad_row(row, "has a ring that GEOS cannot read: " + reader.message());
    if (GEOSisEmpty_r(reader.context(), geometry) != 0) continue;
    if (kiln::Status status = append_coordinates(reader, row, geometry, column.x, column.y); !status) return status;
    column.offsets.push_back(static_cast<std::int32_t>(column.x.size()));
    column.shells.push_back(ring < 0);
  }
  return {};
}

kiln::Status append_polygon(Reader& reader, std::size_t row, const GEOSGeometry* geometry, PolygonColumn& column) {
  const int type = GEOSGeomTypeId_r(reader.context(), geometry);
  if (type == GEOS_POLYGON) return append_rings(reader, row, geometry, column);
  if (type != GEOS_MULTIPOLYGON) return other_family(reader, row, geometry, "polygons and multipolygons");
  const int parts = GEOSGetNumGeometries_r(reader.context(), geometry);
  for (int part = 0; part < parts; ++part) {
    const GEOSGeometry* polygon = GEOSGetGeometryN_r(reader.context(), geometry, part);
    if (kiln::Status status = append_rings(reader, row, polygon, column); !status) return status;
  }
  return {};
}

kiln::Status check_rows(std::size_t rows) {
  if (rows <= kMaxRows) return {};
  return kiln::Error{kiln::Code::InvalidArgument, "a column has at most 2^31 - 1 rows", {}};
}

kiln::Status append_point(Reader& reader, std::size_t row, const GEOSGeometry* geometry, PointColumn& column) {
  if (GEOSGeomTypeId_r(reader.context(), geometry) != GEOS_POINT) return other_family(reader, row, geometry, "points");
  if (GEOSisEmpty_r(reader.context(), geometry) != 0) {
    column.add_empty();
    return {};
  }
  if (kiln::Status status = append_coordinates(reader, row, geometry, column.x, column.y); !status) return status;
  column.valid.push_back(true);
  return {};
}

kiln::Status append_polygon_row(Reader& reader, std::size_t row, const GEOSGeometry* geometry, PolygonColumn& column) {
  kiln::Status status = append_polygon(reader, row, geometry, column);
  if (status) column.end_row();
  return status;
}

template <class Column>
kiln::Result<Column> read_rows(const std::vector<Wkb>& rows,
                               kiln::Status (*append)(Reader&, std::size_t, const GEOSGeometry*, Column&)) {
  if (kiln::Status status = check_rows(rows.size()); !status) return status.error();
  Reader reader;
  Column column;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (!rows[row]) {
      column.add_null();
      continue;
    }
    const Reader::Geometry geometry = reader.read(*rows[row]);
    if (!geometry) return bad_row(row, "is not WKB: " + reader.message());
    if (kiln::Status status = append(reader, row, geometry.get(), column); !status) return status.error();
  }
  return column;
}

}  // namespace

kiln::Result<PointColumn> read_points(const std::vector<Wkb>& rows) {
  return read_rows<PointColumn>(rows, append_point);
}

kiln::Result<PolygonColumn> read_polygons(const std::vector<Wkb>& rows) {
  return read_rows<PolygonColumn>(rows, append_polygon_row);
}

}  // namespace spatial
