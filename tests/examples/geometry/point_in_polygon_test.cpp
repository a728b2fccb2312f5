// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numbers>
#include <random>

#include "support/fixtures/cuda_on_host.hpp"

#include "point_in_polygon.cu"

namespace kiln::test {
namespace {

// Six polygons with a hole each: one has many edges, the third is empty and the fifth is null. Some of the points are
// null, some are empty, and some are on vertices.
struct Scene {
  Scene() {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> place(-0.5, 4.5);
    for (int polygon = 0; polygon < 6; ++polygon) {
      const int edges = polygon == 5 ? 700 : 5 + 3 * polygon;
      const Point center = {place(random), place(random)};
      for (int ring = 0; ring < (polygon == 2 ? 0 : 2); ++ring) {
        for (int i = 0; i <= edges; ++i) {
          const double turn = 2 * std::numbers::pi * (i % edges) / edges;
          const double r = (ring == 0 ? 1.0 : 0.3) * (0.8 + 0.04 * ((i % edges) * 7 % 5));
          xs.push_back(center.x + r * std::cos(turn));
          ys.push_back(center.y + r * std::sin(turn));
        }
        offsets.push_back(static_cast<int>(xs.size()));
      }
      rings.push_back(static_cast<int>(offsets.size()) - 1);
    }
    for (int i = 0; i < kPoints; ++i) {
      const bool on_vertex = i % 13 == 0;
      const bool empty = i % 17 == 3;
      const auto vertex = static_cast<std::size_t>(random()) % xs.size();
      px.push_back(empty ? not_a_number() : on_vertex ? xs[vertex] : place(random));
      py.push_back(empty ? not_a_number() : on_vertex ? ys[vertex] : place(random));
      if (i % 11 != 5) valid_points[i / 32] |= 1U << (i % 32);
    }
    for (int i = 0; i < kPoints * 6; ++i) {
      left.push_back(i / 6);
      right.push_back(i % 6);
    }
    for (int side = 0; side < 4; ++side) {
      for (int polygon = 0; polygon < 6; ++polygon) {
        Box box = empty_box();
        const Range range = polygons().coordinates(polygon);
        for (int i = range.first; i < range.last; ++i) box = joined(box, polygons().at[i]);
        boxes.push_back(side == 0 ? box.min_x : side == 1 ? box.min_y : side == 2 ? box.max_x : box.max_y);
      }
    }
  }
  static constexpr int kPoints = 150;
  Polygons polygons() const { return {6, {&valid_polygons}, rings.data(), offsets.data(), {xs.data(), ys.data()}}; }
  Points points() const { return {kPoints, {valid_points}, {px.data(), py.data()}}; }
  Pairs pairs() const { return {kPoints * 6, left.data(), right.data()}; }

  // Uses the sum of angles, a method independent of crossings.
  bool inside_by_angles(int point, int polygon) const {
    double sum = 0;
    for (int ring = rings[polygon]; ring < rings[polygon + 1]; ++ring) {
      double around = 0;
      for (int i = offsets[ring]; i + 1 < offsets[ring + 1]; ++i) {
        const Point a = minus(polygons().at[i], points().at[point]);
        const Point b = minus(polygons().at[i + 1], points().at[point]);
        around += std::atan2(cross(a, b), dot(a, b));
      }
      sum += ring == rings[polygon] ? std::fabs(around) : -std::fabs(around);
    }
    return sum > std::numbers::pi;
  }

  std::vector<double> xs, ys, px, py, boxes;
  std::vector<int> offsets{0}, rings{0}, left, right;
  unsigned valid_polygons = 0b101111;
  unsigned valid_points[5] = {};
};

TEST(PointInPolygonKernels, MatchAngleSumAndHandleNullAndEmpty) {
  const Scene scene;
  std::vector<unsigned char> inside(scene.left.size());
  launch({2}, 64, [&] { pip_sparse(scene.points(), scene.polygons(), scene.pairs(), false, inside.data()); });
  int found = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const bool present = scene.points().state(scene.left[i]) == State::Present &&
                         scene.polygons().state(scene.right[i]) == State::Present;
    if (!present) {
      EXPECT_EQ(inside[i], 0);
      continue;
    }
    const Point p = scene.points().at[scene.left[i]];
    if (side_of(scene.polygons(), scene.right[i], p) == Side::Boundary) {
      EXPECT_EQ(inside[i], 0);
      continue;
    }
    EXPECT_EQ(inside[i] != 0, scene.inside_by_angles(scene.left[i], scene.right[i])) << i;
    found += inside[i];
  }
  EXPECT_GT(found, 20);
}

TEST(PointInPolygonKernels, AgreeWithEachOther) {
  const Scene scene;
  std::vector<unsigned char> sparse(scene.left.size()), large(scene.left.size());
  std::vector<unsigned> dense(5 * 6);
  std::vector<int> totals(6), expected(6);
  launch({1}, 64, [&] { pip_sparse(scene.points(), scene.polygons(), scene.pairs(), false, sparse.data()); });
  launch({1}, 64, [&] { pip_large(scene.points(), scene.polygons(), scene.pairs(), false, large.data()); });
  launch({3, 6}, 64, [&] { pip_dense(scene.points(), scene.polygons(), scene.boxes.data(), 5, dense.data()); });
  launch({6}, 64, [&] { pip_count(scene.points(), scene.polygons(), scene.boxes.data(), false, totals.data()); });
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    const int point = scene.left[i];
    const int polygon = scene.right[i];
    EXPECT_EQ(sparse[i], large[i]);
    EXPECT_EQ(sparse[i], (dense[static_cast<std::size_t>(polygon * 5 + point / 32)] >> (point % 32)) & 1U);
    expected[static_cast<std::size_t>(polygon)] += sparse[i];
  }
  expected[4] = -1;  // null: unknown, which is different from 0
  EXPECT_EQ(totals, expected);
}

}  // namespace
}  // namespace kiln::test
