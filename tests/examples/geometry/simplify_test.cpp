// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "support/fixtures/cuda_on_host.hpp"

#include "simplify.cu"

namespace kiln::test {
namespace {

std::vector<Point> walk(unsigned seed, int vertices) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> step(0, 1);
  std::vector<Point> points;
  Point at = {0, 0};
  for (int i = 0; i < vertices; ++i) points.push_back(at = {at.x + step(random), at.y + step(random) - 0.5});
  return points;
}

// The textbook algorithm: the farthest vertex is kept if it is far enough, and both halves are processed again.
void keep_far_ones(const std::vector<Point>& points, int first, int last, double tolerance,
                   std::vector<unsigned char>& keep) {
  double farthest = -1;
  int middle = first;
  for (int i = first + 1; i < last; ++i) {
    const double far = std::sqrt(squared_distance(Segment{points[first], points[last]}, points[i]));
    if (far > farthest) middle = i;
    farthest = std::max(farthest, far);
  }
  if (!(farthest > tolerance)) return;
  keep[static_cast<std::size_t>(middle)] = 1;
  keep_far_ones(points, first, middle, tolerance, keep);
  keep_far_ones(points, middle, last, tolerance, keep);
}

TEST(SimplifyKernels, MatchDouglasPeucker) {
  for (const int vertices : {3, 33, 300}) {
    const std::vector<Point> points = walk(9, vertices);
    std::vector<double> xs, ys;
    for (const Point& p : points) {
      xs.push_back(p.x);
      ys.push_back(p.y);
    }
    const int offsets[] = {0, vertices};
    const Lines lines{1, {nullptr}, offsets, {xs.data(), ys.data()}};
    std::vector<unsigned char> keep(points.size(), 7), expected(points.size(), 0);
    expected.front() = expected.back() = 1;
    keep_far_ones(points, 0, vertices - 1, 0.3, expected);
    launch({1}, 32, [&] { simplify_by_distance(lines, 0.3, keep.data()); });
    EXPECT_EQ(keep, expected);
    int count = 0;
    launch({1}, 32, [&] { simplify_counts(lines, 2, keep.data(), &count); });
    EXPECT_EQ(count, std::count(expected.begin(), expected.end(), 1));
  }
}

TEST(SimplifyKernels, DropRedundantVertices) {
  const double xs[] = {0, 1, 1, 2, 2, 0.5}, ys[] = {0, 1, 1, 2, 3, 3};
  const int offsets[] = {0, 6};
  unsigned char keep[6];
  launch({1}, 32, [&] { simplify_exactly({1, {nullptr}, offsets, {xs, ys}}, 6, keep); });
  EXPECT_EQ(std::vector<int>(keep, keep + 6), (std::vector<int>{1, 0, 0, 1, 1, 1}));
}

}  // namespace
}  // namespace kiln::test
