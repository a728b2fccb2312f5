#pragma once

#define GEOS_USE_ONLY_R_API
#include <geos_c.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "spatial/operations.hpp"
#include "support/generated_geometry.hpp"

namespace kiln::test {

/// What GEOS says of a set: rows as geometries of its own, polygons prepared. One thread.
class GeosOracle {
 public:
  explicit GeosOracle(const GeneratedSet& set);
  ~GeosOracle();
  GeosOracle(const GeosOracle&) = delete;
  GeosOracle& operator=(const GeosOracle&) = delete;

  /// The set as GEOS writes it.
  std::vector<spatial::Wkb> points_wkb() const { return wkb(points_); }
  std::vector<spatial::Wkb> polygons_wkb() const { return wkb(polygons_); }

  spatial::Boxes bounds_of_points() const { return bounds(points_); }
  spatial::Boxes bounds_of_polygons() const { return bounds(polygons_); }
  /// Of as many rows as there are polygons to, one to one.
  spatial::Mask within_rows() const;
  spatial::Mask within_one(std::size_t polygon) const;
  /// All of them, by an index over the polygons.
  spatial::Pairs pairs() const;
  /// Null and empty rows contain nothing and are in nothing.
  bool contains(std::size_t polygon, std::size_t point) const;

 private:
  GEOSGeometry* made(const Spot& spot) const;
  GEOSGeometry* made(const Shape& shape) const;
  GEOSGeometry* made(const std::vector<Ring>& rings) const;
  std::vector<spatial::Wkb> wkb(const std::vector<GEOSGeometry*>& rows) const;
  spatial::Boxes bounds(const std::vector<GEOSGeometry*>& rows) const;

  GEOSContextHandle_t context_;
  std::vector<GEOSGeometry*> points_;  // null for null
  std::vector<GEOSGeometry*> polygons_;
  std::vector<const GEOSPreparedGeometry*> prepared_;
};

/// The columns of a set, read from the WKB that GEOS writes of it.
struct SetColumns {
  spatial::PointColumn points;
  spatial::PolygonColumn polygons;
};
SetColumns read_columns(const GeosOracle& oracle);

/// A column of rows first … last of another.
spatial::PolygonColumn rows_of(const spatial::PolygonColumn& column, std::size_t first, std::size_t last);
spatial::PointColumn rows_of(const spatial::PointColumn& column, std::size_t first, std::size_t last);

/// Equal in every bit that means something: NaN equals NaN, and minus zero equals zero.
void expect_equal(const spatial::Boxes& boxes, const spatial::Boxes& expected, const std::string& what);
void expect_equal(const spatial::Mask& mask, const spatial::Mask& expected, const std::string& what);
void expect_equal(const spatial::Pairs& pairs, const spatial::Pairs& expected, const std::string& what);

/// Runs every operation on the set's columns, which lie on the host, wherever the runtime's mode makes it run, and
/// compares all that comes out with GEOS.
void expect_equal_to_geos(runtime::Runtime& runtime, const GeneratedSet& set);

/// The two large sets: 100,000 points and 1,000 polygons. Stars with holes anywhere, and shapes of whole numbers that
/// touch each other and the points.
GeneratedSet large_set_of_stars();
GeneratedSet large_set_that_touches();

}  // namespace kiln::test
