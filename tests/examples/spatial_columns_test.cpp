// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "spatial/column.hpp"
#include "spatial/predicates.hpp"
#include "support/fixtures/geos_oracle.hpp"

namespace spatial {
namespace {

using kiln::test::GeneratedSet;
using kiln::test::GeosOracle;
using kiln::test::Ring;
using kiln::test::Shape;

std::string wkb_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

const std::string kOneTwo = wkb_of_hex("0101000000000000000000f03f0000000000000040");  // POINT (1 2)
const std::string kNoPoint = wkb_of_hex("0101000000000000000000f87f000000000000f87f");
const std::string kNoPolygon = wkb_of_hex("010300000000000000");
const std::string kLine = wkb_of_hex("010200000000000000");

TEST(SpatialBitmap, CountsRowsAndKeepsTrailingBitsZero) {
  Bitmap bitmap(35, true);
  EXPECT_EQ(bitmap.count(), 35U);
  EXPECT_EQ(bitmap.words(), (std::vector<std::uint32_t>{0xffffffffU, 7U}));
  bitmap.set(33, false);
  bitmap.push_back(true);
  EXPECT_EQ(bitmap.words()[1], 0b1101U);
  EXPECT_EQ(Bitmap(64, true).count(), 64U);
  EXPECT_EQ(Bitmap(0, true).words().size(), 0U);
}

TEST(SpatialReading, DistinguishesNullAndEmptyPoints) {
  const PointColumn points = read_points({kOneTwo, std::nullopt, kNoPoint}).value();
  ASSERT_EQ(points.rows(), 3U);
  EXPECT_EQ(points[0], (Point{1, 2}));
  EXPECT_FALSE(points.null(0) || points.empty(0));
  EXPECT_TRUE(points.null(1) && !points.empty(1));
  EXPECT_TRUE(points.empty(2) && !points.null(2));
}

TEST(SpatialReading, DistinguishesNullAndEmptyPolygonsAndKeepsAllRings) {
  Shape multi;
  multi.multi = true;
  multi.parts = {{Ring{{0, 0}, {9, 0}, {9, 9}, {0, 0}}, Ring{{4, 1}, {5, 1}, {5, 2}, {4, 1}}},
                 {Ring{{20, 0}, {21, 0}, {21, 1}, {20, 0}}}};
  Shape null;
  null.null = true;
  Shape empty_multi;
  empty_multi.multi = true;
  const PolygonColumn polygons =
      read_polygons(GeosOracle(GeneratedSet{"", {}, {multi, null, Shape{}, empty_multi}}).polygons_wkb()).value();
  EXPECT_EQ(polygons.rings, (std::vector<std::int32_t>{0, 3, 3, 3, 3}));
  EXPECT_EQ(polygons.offsets, (std::vector<std::int32_t>{0, 4, 8, 12}));
  EXPECT_TRUE(polygons.null(1) && !polygons.empty(1));
  EXPECT_TRUE(polygons.empty(2) && !polygons.null(2));
  EXPECT_TRUE(polygons.empty(3) && !polygons.null(3));
}

TEST(SpatialReading, NamesRowWithInvalidWkbOrOtherType) {
  const auto message = [](const auto& result) { return result.has_value() ? "" : result.error().message; };
  EXPECT_NE(message(read_points({kOneTwo, kLine})).find("row 1 is a LineString; this column takes points"),
            std::string::npos);
  EXPECT_NE(message(read_points({kNoPolygon})).find("row 0 is a Polygon"), std::string::npos);
  EXPECT_NE(message(read_polygons({kNoPolygon, kOneTwo})).find("row 1 is a Point; this column takes polygons"),
            std::string::npos);
  for (const std::string& broken :
       {std::string(), std::string("\x01"), kOneTwo.substr(0, 12), std::string(64, '\xff')}) {
    EXPECT_NE(message(read_points({broken})).find("row 0 is not WKB"), std::string::npos);
    EXPECT_NE(message(read_polygons({broken})).find("row 0 is not WKB"), std::string::npos);
  }
}

TEST(SpatialReading, RejectsLengthsBeyondInput) {
  // A polygon with 2^31 - 1 rings, and one ring with as many vertices.
  EXPECT_FALSE(read_polygons({wkb_of_hex("0103000000ffffff7f")}).has_value());
  EXPECT_FALSE(read_polygons({wkb_of_hex("010300000001000000ffffff7f")}).has_value());
  EXPECT_FALSE(read_polygons({wkb_of_hex("0106000000ffffff7f")}).has_value());
}

TEST(SpatialReading, RejectsNonFiniteCoordinates) {
  const kiln::Result<PointColumn> points = read_points({wkb_of_hex("0101000000000000000000f07f0000000000000040")});
  ASSERT_FALSE(points.has_value());
  EXPECT_EQ(points.error().message, "row 0 has a coordinate that is not finite");
}

TEST(SpatialReading, DropsThirdCoordinate) {
  // POINT Z (1 2 3) in EWKB.
  const PointColumn points =
      read_points({wkb_of_hex("0101000080000000000000f03f00000000000000400000000000000840")}).value();
  EXPECT_EQ(points[0], (Point{1, 2}));
}

TEST(SpatialPredicates, OrientationIsExactWhereDoublesAreNot) {
  // Adjacent doubles on both sides of the diagonal, and points on it.
  const Point a{12, 12};
  const Point b{24, 24};
  for (int i = -4; i <= 4; ++i) {
    const double step = std::numeric_limits<double>::epsilon() / 2;
    const Point p{0.5 + i * step, 0.5};
    EXPECT_EQ(orientation(a, b, p), i > 0 ? -1 : i < 0 ? 1 : 0) << i;
  }
  EXPECT_EQ(orientation({0, 0}, {1e12, 1e12}, {1e-12, 1e-12}), 0);
  EXPECT_EQ(orientation({0, 0}, {1e12, 1e12}, {1e-12, 1.0000000000000002e-12}), 1);
}

TEST(SpatialPredicates, DetectOnlyAxisParallelRectangles) {
  const auto all = [](std::vector<Ring> rings) {
    PolygonColumn column;
    column.add_null();
    column.end_row();
    for (const Ring& ring : rings) column.add_ring(ring);
    column.end_row();
    return all_rectangles(column);
  };
  EXPECT_TRUE(all({}));
  EXPECT_TRUE(all({{{0, 0}, {2, 0}, {2, 1}, {0, 1}, {0, 0}}}));
  EXPECT_TRUE(all({{{0, 0}, {0, 1}, {2, 1}, {2, 0}, {0, 0}}}));
  EXPECT_TRUE(all({{{0, 0}, {0, 1}, {0, 1}, {0, 0}, {0, 0}}})) << "without width";
  EXPECT_FALSE(all({{{0, 0}, {2, 0}, {2, 1}, {0, 2}, {0, 0}}}));
  EXPECT_FALSE(all({{{0, 0}, {2, 0}, {0, 1}, {2, 1}, {0, 0}}})) << "a bow tie";
  EXPECT_FALSE(all({{{0, 0}, {2, 0}, {2, 1}, {0, 0}}}));
  EXPECT_FALSE(all({{{0, 0}, {9, 0}, {9, 9}, {0, 9}, {0, 0}}, {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {1, 1}}})) << "a hole";
}

TEST(SpatialDigest, DependsOnPairsAndOrder) {
  EXPECT_EQ(digest({}), 0xcbf29ce484222325U);
  EXPECT_EQ(digest({{1, 2}}), digest({{1, 2}}));
  EXPECT_NE(digest({{1, 2}}), digest({{2, 1}}));
  EXPECT_NE(digest({{1, 2}, {3, 4}}), digest({{3, 4}, {1, 2}}));
}

}  // namespace
}  // namespace spatial
