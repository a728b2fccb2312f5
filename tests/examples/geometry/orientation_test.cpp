// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numbers>
#include <random>

#include "support/fixtures/cuda_on_host.hpp"

#include "orientation.cu"

namespace kiln::test {
namespace {

TEST(OrientationKernels, SideOfLineIsExact) {
  // Coordinates that differ in the last bits of doubles: the expected result is the sign of a determinant of small
  // integers.
  std::mt19937 random(1);
  std::uniform_int_distribution<int> last_bits(0, 15);
  const auto at = [](int bits) { return 0.5 + std::ldexp(bits, -53); };
  for (int i = 0; i < 20000; ++i) {
    int n[6];
    for (int& each : n) each = last_bits(random);
    const int exact = (n[0] - n[4]) * (n[3] - n[5]) - (n[1] - n[5]) * (n[2] - n[4]);
    ASSERT_EQ(orientation({at(n[0]), at(n[1])}, {at(n[2]), at(n[3])}, {at(n[4]), at(n[5])}), sign_of(exact));
  }
}

TEST(OrientationKernels, SideOfLineIsExactDespiteRounding) {
  // Relative to 24 the last bits near 0.5 are rounded away. The exact side is that of y - x.
  for (int x = 0; x < 64; ++x) {
    for (int y = 0; y < 64; ++y) {
      const Point a = {0.5 + std::ldexp(x, -53), 0.5 + std::ldexp(y, -53)};
      ASSERT_EQ(orientation(a, {12, 12}, {24, 24}), sign_of(y - x)) << x << " " << y;
    }
  }
}

TEST(OrientationKernels, DetectPointInCircle) {
  const double xs[] = {0, 1, 0, 0.5, 1, 2};
  const double ys[] = {0, 0, 1, 0.5, 1, 2};
  // a, b, c turn left in the first row and right in the second. d is inside, on and outside the circle.
  const double ax[] = {0, 0, 0}, ay[] = {0, 0, 0}, bx[] = {1, 0, 1}, by[] = {0, 1, 0}, cx[] = {0, 1, 0},
               cy[] = {1, 0, 1};
  const Points a{3, {nullptr}, {ax, ay}}, b{3, {nullptr}, {bx, by}}, c{3, {nullptr}, {cx, cy}};
  const Points d{3, {nullptr}, {xs + 3, ys + 3}};
  signed char sides[3] = {};
  unsigned valid = 0;
  launch({1}, 32, [&] { in_circle_of_points(a, b, c, d, sides, &valid); });
  EXPECT_EQ(sides[0], 1);
  EXPECT_EQ(sides[1], 0);
  EXPECT_EQ(sides[2], -1);
  EXPECT_EQ(valid, 7U);
}

TEST(OrientationKernels, TrianglesCoverRings) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> radius(0.2, 2.0);
  for (int round = 0; round < 100; ++round) {
    const int vertices = 3 + round % 40;
    std::vector<double> xs, ys;
    for (int i = 0; i < vertices; ++i) {
      const double turn = (round % 2 == 0 ? 2 : -2) * std::numbers::pi * i / vertices;
      const double r = radius(random);
      xs.push_back(r * std::cos(turn) + 1e6);
      ys.push_back(r * std::sin(turn));
    }
    xs.push_back(xs[0]);
    ys.push_back(ys[0]);
    const int offsets[] = {0, vertices + 1};
    const Lines rings{1, {nullptr}, offsets, {xs.data(), ys.data()}};
    std::vector<int> next(xs.size()), previous(xs.size()), triangles(3 * xs.size());
    signed char turn = 0;
    int count = 0;
    int forced = 0;
    launch({1}, 32, [&] { orientation_of_rings(rings, &turn); });
    launch({1}, 32,
           [&] { triangulate_rings(rings, &turn, next.data(), previous.data(), triangles.data(), &count, &forced); });
    EXPECT_EQ(turn, round % 2 == 0 ? 1 : -1);
    ASSERT_EQ(count, vertices - 2);
    EXPECT_EQ(forced, 0);
    double covered = 0;
    for (int i = 0; i < count; ++i) {
      const Point a = rings.at[triangles[3 * i]];
      covered += cross(minus(rings.at[triangles[3 * i + 1]], a), minus(rings.at[triangles[3 * i + 2]], a));
    }
    EXPECT_NEAR(covered, twice_signed_area(rings.at, {0, vertices + 1}), 1e-8);
  }
}

}  // namespace
}  // namespace kiln::test
