#include "support/geos_oracle.hpp"

#include <algorithm>
#include <cmath>

namespace kiln::test {

GeosOracle::GeosOracle(const GeneratedSet& set) : context_(GEOS_init_r()) {
  for (const Spot& spot : set.points) points_.push_back(made(spot));
  for (const Shape& shape : set.polygons) polygons_.push_back(made(shape));
  for (GEOSGeometry* polygon : polygons_) {
    prepared_.push_back(polygon == nullptr ? nullptr : GEOSPrepare_r(context_, polygon));
  }
}

GeosOracle::~GeosOracle() {
  for (const GEOSPreparedGeometry* prepared : prepared_) {
    if (prepared != nullptr) GEOSPreparedGeom_destroy_r(context_, prepared);
  }
  for (const auto* rows : {&points_, &polygons_}) {
    for (GEOSGeometry* geometry : *rows) {
      if (geometry != nullptr) GEOSGeom_destroy_r(context_, geometry);
    }
  }
  GEOS_finish_r(context_);
}

GEOSGeometry* GeosOracle::made(const Spot& spot) const {
  if (spot.null) return nullptr;
  if (!spot.at) return GEOSGeom_createEmptyPoint_r(context_);
  return GEOSGeom_createPointFromXY_r(context_, spot.at->x, spot.at->y);
}

GEOSGeometry* GeosOracle::made(const std::vector<Ring>& rings) const {
  std::vector<GEOSGeometry*> geometries;
  for (const Ring& ring : rings) {
    const double* first = &ring.front().x;
    GEOSCoordSequence* sequence =
        GEOSCoordSeq_copyFromBuffer_r(context_, first, static_cast<unsigned>(ring.size()), 0, 0);
    geometries.push_back(GEOSGeom_createLinearRing_r(context_, sequence));
    EXPECT_NE(geometries.back(), nullptr) << "GEOS takes no ring of " << ring.size() << " vertices";
  }
  return GEOSGeom_createPolygon_r(context_, geometries.front(), geometries.data() + 1,
                                  static_cast<unsigned>(geometries.size() - 1));
}

GEOSGeometry* GeosOracle::made(const Shape& shape) const {
  if (shape.null) return nullptr;
  if (!shape.multi) return shape.parts.empty() ? GEOSGeom_createEmptyPolygon_r(context_) : made(shape.parts.front());
  std::vector<GEOSGeometry*> parts;
  for (const std::vector<Ring>& rings : shape.parts) parts.push_back(made(rings));
  return GEOSGeom_createCollection_r(context_, GEOS_MULTIPOLYGON, parts.data(), static_cast<unsigned>(parts.size()));
}

std::vector<spatial::Wkb> GeosOracle::wkb(const std::vector<GEOSGeometry*>& rows) const {
  std::vector<spatial::Wkb> written;
  GEOSWKBWriter* writer = GEOSWKBWriter_create_r(context_);
  for (const GEOSGeometry* geometry : rows) {
    if (geometry == nullptr) {
      written.emplace_back();
      continue;
    }
    std::size_t size = 0;
    unsigned char* bytes = GEOSWKBWriter_write_r(context_, writer, geometry, &size);
    written.emplace_back(std::string(reinterpret_cast<const char*>(bytes), size));
    GEOSFree_r(context_, bytes);
  }
  GEOSWKBWriter_destroy_r(context_, writer);
  return written;
}

spatial::Boxes GeosOracle::bounds(const std::vector<GEOSGeometry*>& rows) const {
  spatial::Boxes boxes{std::vector<double>(4 * rows.size()), spatial::Bitmap(rows.size(), true)};
  for (std::size_t row = 0; row < rows.size(); ++row) {
    spatial::Box box;
    if (rows[row] == nullptr) {
      boxes.valid.set(row, false);
      box.min_x = box.min_y = box.max_x = box.max_y = spatial::kNotANumber;
    } else if (GEOSisEmpty_r(context_, rows[row]) == 0) {
      GEOSGeom_getXMin_r(context_, rows[row], &box.min_x);
      GEOSGeom_getYMin_r(context_, rows[row], &box.min_y);
      GEOSGeom_getXMax_r(context_, rows[row], &box.max_x);
      GEOSGeom_getYMax_r(context_, rows[row], &box.max_y);
    }
    const double sides[4] = {box.min_x, box.min_y, box.max_x, box.max_y};
    for (std::size_t side = 0; side < 4; ++side) boxes.sides[side * rows.size() + row] = sides[side];
  }
  return boxes;
}

bool GeosOracle::contains(std::size_t polygon, std::size_t point) const {
  if (polygons_[polygon] == nullptr || points_[point] == nullptr) return false;
  return GEOSPreparedContains_r(context_, prepared_[polygon], points_[point]) == 1;
}

spatial::Mask GeosOracle::within_rows() const {
  const std::size_t rows = std::min(points_.size(), polygons_.size());
  spatial::Mask mask{spatial::Bitmap(rows, false), spatial::Bitmap(rows, false)};
  for (std::size_t row = 0; row < rows; ++row) {
    mask.valid.set(row, points_[row] != nullptr && polygons_[row] != nullptr);
    mask.inside.set(row, contains(row, row));
  }
  return mask;
}

spatial::Mask GeosOracle::within_one(std::size_t polygon) const {
  spatial::Mask mask{spatial::Bitmap(points_.size(), false), spatial::Bitmap(points_.size(), false)};
  for (std::size_t row = 0; row < points_.size(); ++row) {
    mask.valid.set(row, points_[row] != nullptr && polygons_[polygon] != nullptr);
    mask.inside.set(row, contains(polygon, row));
  }
  return mask;
}

spatial::Pairs GeosOracle::pairs() const {
  struct Query {
    const GeosOracle* oracle;
    std::size_t point;
    spatial::Pairs pairs;
  } query{this, 0, {}};
  std::vector<std::size_t> numbers(polygons_.size());
  GEOSSTRtree* tree = GEOSSTRtree_create_r(context_, 10);
  for (std::size_t polygon = 0; polygon < polygons_.size(); ++polygon) {
    numbers[polygon] = polygon;
    const GEOSGeometry* geometry = polygons_[polygon];
    if (geometry != nullptr && GEOSisEmpty_r(context_, geometry) == 0) {
      GEOSSTRtree_insert_r(context_, tree, geometry, &numbers[polygon]);
    }
  }
  const auto visit = [](void* item, void* data) {
    Query& asked = *static_cast<Query*>(data);
    const std::size_t polygon = *static_cast<std::size_t*>(item);
    if (!asked.oracle->contains(polygon, asked.point)) return;
    asked.pairs.push_back({static_cast<std::int32_t>(asked.point), static_cast<std::int32_t>(polygon)});
  };
  for (query.point = 0; query.point < points_.size(); ++query.point) {
    const GEOSGeometry* geometry = points_[query.point];
    if (geometry != nullptr && GEOSisEmpty_r(context_, geometry) == 0) {
      GEOSSTRtree_query_r(context_, tree, geometry, visit, &query);
    }
  }
  GEOSSTRtree_destroy_r(context_, tree);
  std::sort(query.pairs.begin(), query.pairs.end());
  return query.pairs;
}

SetColumns read_columns(const GeosOracle& oracle) {
  return {spatial::read_points(oracle.points_wkb()).value(), spatial::read_polygons(oracle.polygons_wkb()).value()};
}

spatial::PolygonColumn rows_of(const spatial::PolygonColumn& column, std::size_t first, std::size_t last) {
  spatial::PolygonColumn rows;
  for (std::size_t row = first; row < last; ++row) {
    if (column.null(row)) {
      rows.add_null();
      continue;
    }
    for (std::int32_t ring = column.rings[row]; ring < column.rings[row + 1]; ++ring) {
      Ring vertices;
      for (std::int32_t i = column.offsets[ring]; i < column.offsets[ring + 1]; ++i) {
        vertices.push_back({column.x[i], column.y[i]});
      }
      rows.add_ring(vertices);
    }
    rows.end_row();
  }
  return rows;
}

spatial::PointColumn rows_of(const spatial::PointColumn& column, std::size_t first, std::size_t last) {
  spatial::PointColumn rows;
  for (std::size_t row = first; row < last; ++row) {
    if (column.null(row)) {
      rows.add_null();
    } else {
      rows.add(column[row]);
    }
  }
  return rows;
}

void expect_equal(const spatial::Boxes& boxes, const spatial::Boxes& expected, const std::string& what) {
  EXPECT_EQ(boxes.valid, expected.valid) << what;
  ASSERT_EQ(boxes.sides.size(), expected.sides.size()) << what;
  for (std::size_t i = 0; i < boxes.sides.size(); ++i) {
    const double a = boxes.sides[i];
    const double b = expected.sides[i];
    ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << what << ": side " << i / boxes.rows() << " of row "
                                                            << i % boxes.rows() << " is " << a << ", GEOS says " << b;
  }
}

void expect_equal(const spatial::Mask& mask, const spatial::Mask& expected, const std::string& what) {
  EXPECT_EQ(mask.valid, expected.valid) << what;
  ASSERT_EQ(mask.inside.size(), expected.inside.size()) << what;
  for (std::size_t row = 0; row < mask.inside.size(); ++row) {
    ASSERT_EQ(mask.inside[row], expected.inside[row]) << what << ": row " << row;
  }
  EXPECT_EQ(mask.inside, expected.inside) << what << ": bits behind the last row";
}

void expect_equal(const spatial::Pairs& pairs, const spatial::Pairs& expected, const std::string& what) {
  ASSERT_EQ(pairs.size(), expected.size()) << what;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    ASSERT_TRUE(pairs[i] == expected[i]) << what << ": pair " << i << " is (" << pairs[i].point << ", "
                                         << pairs[i].polygon << "), GEOS says (" << expected[i].point << ", "
                                         << expected[i].polygon << ")";
  }
}

void expect_equal_to_geos(runtime::Runtime& runtime, const GeneratedSet& set) {
  const GeosOracle oracle(set);
  const SetColumns columns = read_columns(oracle);
  expect_equal(spatial::bounds(runtime, columns.points).value().host, oracle.bounds_of_points(), set.name + ", points");
  expect_equal(spatial::bounds(runtime, columns.polygons).value().host, oracle.bounds_of_polygons(),
               set.name + ", polygons");
  const std::size_t rows = std::min(columns.points.rows(), columns.polygons.rows());
  const spatial::PointColumn points = rows_of(columns.points, 0, rows);
  expect_equal(spatial::within(runtime, points, rows_of(columns.polygons, 0, rows)).value().host, oracle.within_rows(),
               set.name + ", within row by row");
  if (columns.points.rows() != 1) {
    const std::size_t polygon = columns.points.rows() % columns.polygons.rows();
    expect_equal(spatial::within(runtime, columns.points, rows_of(columns.polygons, polygon, polygon + 1)).value().host,
                 oracle.within_one(polygon), set.name + ", within polygon " + std::to_string(polygon));
  }
  expect_equal(spatial::sjoin(runtime, columns.points, columns.polygons).value().host, oracle.pairs(),
               set.name + ", sjoin");
}

GeneratedSet large_set_of_stars() {
  Dice dice(20261115);
  GeneratedSet set{"stars with holes", {}, {}};
  for (int i = 0; i < 1'000; ++i) {
    Shape shape;
    shape.null = i % 100 == 17;
    if (!shape.null && i % 100 != 42) {
      const spatial::Point middle{dice.unit(), dice.unit()};
      const std::size_t vertices = 8 + dice.below(57);
      Ring shell;
      Ring hole;
      for (std::size_t k = 0; k < vertices; ++k) {
        const double angle = 2 * M_PI * static_cast<double>(k) / static_cast<double>(vertices);
        const double radius = dice.between(0.02, 0.06);
        shell.push_back({middle.x + radius * std::cos(angle), middle.y + radius * std::sin(angle)});
        hole.push_back({middle.x + 0.01 * std::cos(angle), middle.y + 0.01 * std::sin(angle)});
      }
      shell.push_back(shell.front());
      hole.push_back(hole.front());
      shape.parts = {{shell}};
      if (dice.chance(0.5)) shape.parts[0].push_back(hole);
    }
    set.polygons.push_back(shape);
  }
  for (int i = 0; i < 100'000; ++i) {
    Spot spot;
    spot.null = i % 1'000 == 3;
    if (!spot.null && i % 1'000 != 5) spot.at = spatial::Point{dice.unit(), dice.unit()};
    set.points.push_back(spot);
  }
  return set;
}

GeneratedSet large_set_that_touches() {
  Dice dice(8);
  GeneratedSet set{"shapes that touch", {}, {}};
  const auto whole = [&dice](std::size_t end) { return static_cast<double>(dice.below(end)); };
  for (int i = 0; i < 1'000; ++i) {
    Shape shape;
    shape.null = i % 50 == 7;
    if (!shape.null && i % 50 != 8) {
      const double x = whole(290);
      const double y = whole(290);
      const double size = 2 + whole(8);
      // Diamonds, triangles and squares of a lattice, edge to edge and corner to corner.
      const Ring rings[] = {
          {{x + size, y}, {x + 2 * size, y + size}, {x + size, y + 2 * size}, {x, y + size}, {x + size, y}},
          {{x, y}, {x + 2 * size, y}, {x, y + 2 * size}, {x, y}},
          {{x, y}, {x + size, y}, {x + size, y + size}, {x, y + size}, {x, y}}};
      shape.parts = {{rings[dice.below(3)]}};
    }
    set.polygons.push_back(shape);
  }
  for (int i = 0; i < 100'000; ++i) {
    Spot spot;
    spot.null = i % 500 == 3;
    if (!spot.null && i % 500 != 5) spot.at = spatial::Point{whole(620) / 2, whole(620) / 2};
    set.points.push_back(spot);
  }
  return set;
}

}  // namespace kiln::test
