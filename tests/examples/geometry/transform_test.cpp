// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/cuda_on_host.hpp"

#include "transform.cu"

namespace kiln::test {
namespace {

template <class Projection>
void expect_there_and_back(const Projection& projection, Point from, Point to, double tolerance) {
  double x = 0, y = 0, back_x = 0, back_y = 0;
  launch({1}, 32, [&] { project({&from.x, &from.y}, 1, projection, &x, &y); });
  EXPECT_NEAR(x, to.x, tolerance);
  EXPECT_NEAR(y, to.y, tolerance);
  launch({1}, 32, [&] { unproject({&x, &y}, 1, projection, &back_x, &back_y); });
  EXPECT_NEAR(back_x, from.x, 1e-10);
  EXPECT_NEAR(back_y, from.y, 1e-10);
}

constexpr Ellipsoid kWgs84 = {6378137, 1 / 298.257223563};

TEST(TransformKernels, MatchPublishedProjections) {
  // The edge of a UTM zone at the equator; the northern edge of web maps; EPSG method 9804 at 50 degrees; Snyder's
  // example of the Albers conic on Clarke's ellipsoid of 1866.
  expect_there_and_back(TransverseMercator{kWgs84, 9, 0.9996, 500000, 0}, {12, 0}, {833978.5569, 0}, 1e-4);
  expect_there_and_back(Mercator{{6378137, 0}, 0, 1}, {-170, 85.0511287798066}, {-18924313.4349, 20037508.3428}, 1e-4);
  expect_there_and_back(Mercator{kWgs84, 0, 1}, {10, 50}, {1113194.9079, 6413524.5942}, 1e-4);
  expect_there_and_back(ConicEqualArea{{6378206.4, 1 - 6356583.8 / 6378206.4}, -96, 23, 29.5, 45.5}, {-75, 35},
                        {1885472.7, 1535925.0}, 0.1);
}

TEST(TransformKernels, KeepEmptyPointsAndReturnNanOutsideDomain) {
  const double xs[] = {not_a_number(), 9}, ys[] = {not_a_number(), 91};
  double x[2], y[2];
  launch({1}, 32, [&] { project({xs, ys}, 2, TransverseMercator{kWgs84, 9, 0.9996, 500000, 0}, x, y); });
  EXPECT_TRUE(std::isnan(x[0]) && std::isnan(y[0]) && std::isnan(x[1]) && std::isnan(y[1]));
}

}  // namespace
}  // namespace kiln::test
