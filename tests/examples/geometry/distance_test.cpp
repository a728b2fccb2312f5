// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/cuda_on_host.hpp"

#include "distance.cu"

namespace kiln::test {
namespace {

TEST(DistanceKernels, MatchPublishedGeodesicDistances) {
  const Spheroid earth{6378137, 1 / 298.257223563};
  EXPECT_NEAR(earth({144.42486788888888, -37.95103341666667}, {143.92649552777777, -37.65282113888889}), 54972.271,
              5e-4);
  EXPECT_NEAR(earth({0, 0}, {0, 90}), 10001965.729, 1e-3);
  EXPECT_NEAR(earth({179.5, 0}, {-179.5, 0}), 111319.491, 1e-3);
  EXPECT_EQ(earth({7, 50}, {7, 50}), 0);
}

TEST(DistanceKernels, MeasurePolygonsAndLines) {
  const double xs[] = {0, 1, 1, 0, 0, 3, 4, 4, 3, 3, 0.2, 0.3, 0.3, 0.2, 0.2};
  const double ys[] = {0, 0, 1, 1, 0, 4, 4, 5, 5, 4, 0.2, 0.2, 0.3, 0.3, 0.2};
  const int rings[] = {0, 1, 2, 3, 3};
  const int offsets[] = {0, 5, 10, 15};
  const Polygons polygons{4, {nullptr}, rings, offsets, {xs, ys}};
  const int left[] = {0, 0, 0};
  const int right[] = {1, 2, 3};  // apart, within, empty
  double distances[3];
  launch({3}, 64, [&] { distance_polygon_tiles(polygons, polygons, {3, left, right}, -1, distances); });
  EXPECT_DOUBLE_EQ(distances[0], std::hypot(2, 3));
  EXPECT_EQ(distances[1], 0);
  EXPECT_TRUE(std::isnan(distances[2]));

  const Lines lines{3, {nullptr}, offsets, {xs, ys}};
  double room[3 * 8];
  launch({1}, 64, [&] { hausdorff_tiles(lines, lines, {1, left, right}, distances); });
  EXPECT_EQ(distances[0], 5);
  launch({1}, 64, [&] { frechet_diagonals(lines, lines, {1, left, right}, 8, room, distances); });
  EXPECT_EQ(distances[0], 5);
}

TEST(DistanceKernels, FindNearestAndSkipEmptyPoints) {
  const double px[] = {0}, py[] = {0};
  const double qx[] = {5, 1, not_a_number(), 2}, qy[] = {0, 0, not_a_number(), 0};
  int nearest[4];
  double distances[4];
  launch({1}, 32, [&] { nearest_points<4>({1, {nullptr}, {px, py}}, {4, {nullptr}, {qx, qy}}, nearest, distances); });
  EXPECT_EQ(std::vector<int>(nearest, nearest + 4), (std::vector<int>{1, 3, 0, -1}));
  EXPECT_EQ(distances[2], 5);
  EXPECT_TRUE(std::isinf(distances[3]));
}

}  // namespace
}  // namespace kiln::test
