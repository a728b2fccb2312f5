// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "spatial/predicates.hpp"
#include "support/fixtures/geos_oracle.hpp"

namespace kiln::test {
namespace {

runtime::Runtime runtime_on_processor() {
  runtime::RuntimeOptions options;
  options.mode = runtime::Mode::Cpu;
  return runtime::Runtime(Session::open().value(), options);
}

TEST(SpatialOnCpu, EveryOperationEqualsGeosOnGeneratedSets) {
  runtime::Runtime runtime = runtime_on_processor();
  std::size_t matches = 0;
  for (std::uint64_t number = 0; number < kGeneratedSets; ++number) {
    const GeneratedSet set = generated_set(number);
    expect_equal_to_geos(runtime, set);
    matches += GeosOracle(set).pairs().size();
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(matches, 10'000U) << "the sets must contain matches";
}

// The generated sets must contain the cases they are meant for.
TEST(GeneratedGeometry, HasNullsEmptiesHolesSpikesAndPointsOnBoundaries) {
  std::size_t null_points = 0;
  std::size_t empty_points = 0;
  std::size_t null_polygons = 0;
  std::size_t empty_polygons = 0;
  std::size_t holes = 0;
  std::size_t several_parts = 0;
  std::size_t without_points = 0;
  std::size_t on_boundary = 0;
  for (std::uint64_t number = 0; number < kGeneratedSets; ++number) {
    const GeneratedSet set = generated_set(number);
    const SetColumns columns = read_columns(GeosOracle(set));
    without_points += set.points.empty();
    for (const Spot& spot : set.points) {
      null_points += spot.null;
      empty_points += !spot.null && !spot.at;
    }
    for (std::size_t row = 0; row < set.polygons.size(); ++row) {
      const Shape& shape = set.polygons[row];
      null_polygons += shape.null;
      empty_polygons += !shape.null && shape.parts.empty();
      several_parts += shape.parts.size() > 1;
      for (const std::vector<Ring>& part : shape.parts) holes += part.size() - 1;
      for (std::int32_t ring = columns.polygons.rings[row]; ring < columns.polygons.rings[row + 1]; ++ring) {
        for (const Spot& spot : set.points) {
          if (!spot.at) continue;
          spatial::Crossings crossings(*spot.at);
          for (std::int32_t i = columns.polygons.offsets[ring] + 1; i < columns.polygons.offsets[ring + 1]; ++i) {
            crossings.add({columns.polygons.x[i - 1], columns.polygons.y[i - 1]},
                          {columns.polygons.x[i], columns.polygons.y[i]});
          }
          on_boundary += crossings.on_boundary();
        }
      }
    }
  }
  for (const std::size_t count : {null_points, empty_points, null_polygons, empty_polygons, holes, several_parts}) {
    EXPECT_GT(count, 50U);
  }
  EXPECT_GT(without_points, 0U);
  EXPECT_GT(on_boundary, 1'000U);
}

spatial::Mask within_one_polygon(const GeneratedSet& set) {
  runtime::Runtime runtime = runtime_on_processor();
  const SetColumns columns = read_columns(GeosOracle(set));
  return spatial::within(runtime, columns.points, columns.polygons).value().host;
}

// examples/spatial/README.md, Robustness. GEOS computes sides of lines with pairs of doubles, about 106 bits, which is
// not always enough if one edge has coordinates from 1e-12 to 1e12. Here the determinant is 2.4e-15, from terms of 1e1.
// With exact arithmetic the point is inside; GEOS puts it on the boundary if the edge has this direction.
TEST(SpatialRobustness, IsExactForExtremeCoordinatesWhereGeosIsNot) {
  const spatial::Point a{6e12, -6e12};
  const spatial::Point b{-8e-12, 7e-12};
  const spatial::Point p{-3e-12, 2e-12};
  ASSERT_EQ(spatial::orientation(a, b, p), 1);
  const spatial::Point c{-6e12, -6e12};
  Shape triangle;
  triangle.parts = {{Ring{b, a, c, b}}};
  const GeneratedSet set{"", {{false, p}, {false, p}}, {triangle}};
  EXPECT_FALSE(GeosOracle(set).contains(0, 0)) << "GEOS has improved: update examples/spatial/README.md";
  EXPECT_TRUE(within_one_polygon(set).inside[0]);
}

// A point inside an odd number of rings is inside. GEOS differs only for invalid polygons.
TEST(SpatialRobustness, HoleOutsideShellCountsAsRing) {
  Shape shape;
  shape.parts = {{Ring{{0, 0}, {4, 0}, {4, 4}, {0, 4}, {0, 0}}, Ring{{6, 6}, {9, 6}, {9, 9}, {6, 9}, {6, 6}}}};
  const GeneratedSet set{"", {{false, spatial::Point{7, 7}}, {false, spatial::Point{1, 1}}}, {shape}};
  EXPECT_FALSE(GeosOracle(set).contains(0, 0));
  const spatial::Mask mask = within_one_polygon(set);
  EXPECT_TRUE(mask.inside[0]);
  EXPECT_TRUE(mask.inside[1]);
}

}  // namespace
}  // namespace kiln::test
