// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/cuda_on_host.hpp"

#include "measures.cu"

namespace kiln::test {
namespace {

TEST(MeasureKernels, DistinguishNullEmptyAndFlatPolygons) {
  // A square with a hole, an empty polygon, a flat one and a null one, far from the origin.
  double xs[] = {0, 4, 4, 0, 0, 1, 1, 2, 2, 1, 10, 12, 12, 10, 10};
  double ys[] = {0, 0, 4, 4, 0, 1, 2, 2, 1, 1, 10, 10, 10, 10, 10};
  for (double& x : xs) x += 1e6;
  for (double& y : ys) y += 1e6;
  const int rings[] = {0, 2, 2, 3, 3};
  const int offsets[] = {0, 5, 10, 15};
  const unsigned valid = 0b0111;
  const Polygons polygons{4, {&valid}, rings, offsets, {xs, ys}};
  double areas[4], center_x[4], center_y[4], within_x[4], within_y[4], lengths[4];
  unsigned known = 0;
  unsigned char states[4];
  launch({1}, 32, [&] { area_of_polygons(polygons, areas, &known); });
  EXPECT_EQ(known, valid);
  launch({1}, 32, [&] { centroid_of_polygons(polygons, center_x, center_y, &known); });
  EXPECT_EQ(known, valid);
  launch({1}, 32, [&] { points_within(polygons, within_x, within_y, &known); });
  launch({1}, 64, [&] { length_of(polygons, lengths, states); });

  EXPECT_EQ(areas[0], 15);
  EXPECT_NEAR(center_x[0], 1e6 + 30.5 / 15, 1e-6);
  EXPECT_EQ(lengths[0], 20);
  EXPECT_EQ(side_of(polygons, 0, {within_x[0], within_y[0]}), Side::Inside);
  EXPECT_EQ(areas[1], 0);
  EXPECT_EQ(lengths[1], 0);
  EXPECT_TRUE(std::isnan(center_x[1])) << "an empty point";
  EXPECT_EQ(areas[2], 0);
  EXPECT_EQ(center_x[2], 1e6 + 11);
  EXPECT_EQ(center_y[2], 1e6 + 10);
  EXPECT_TRUE(std::isnan(areas[3]) && std::isnan(lengths[3]));
}

}  // namespace
}  // namespace kiln::test
