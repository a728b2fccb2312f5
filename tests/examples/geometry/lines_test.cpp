// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "support/fixtures/cuda_on_host.hpp"

#include "lines.cu"

namespace kiln::test {
namespace {

// Long and short lines, an empty one and one with a single coordinate.
struct Walks {
  Walks() {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> step(-0.3, 0.7);
    for (const int vertices : {90, 40, 0, 1, 33}) {
      Point at = {0, 0};
      for (int i = 0; i < vertices; ++i) {
        at = {at.x + step(random), at.y + step(random)};
        xs.push_back(at.x);
        ys.push_back(at.y);
      }
      offsets.push_back(static_cast<int>(xs.size()));
    }
    until.resize(xs.size());
    launch({1}, 64, [&] { distances_along(column(), until.data()); });
  }
  Lines column() const { return {5, {nullptr}, offsets.data(), {xs.data(), ys.data()}}; }
  double length(int row) const {
    double sum = 0;
    for (int i = offsets[row]; i + 1 < offsets[row + 1]; ++i) sum += distance(column().at[i], column().at[i + 1]);
    return sum;
  }
  std::vector<double> xs, ys, until;
  std::vector<int> offsets{0};
};

TEST(LineKernels, FindMidpointAndItsDistance) {
  const Walks walks;
  const std::vector<double> half(5, 0.5);
  double xs[5], ys[5], along[3];
  unsigned valid = 0;
  launch({1}, 32, [&] { points_along(walks.column(), walks.until.data(), half.data(), true, xs, ys, &valid); });
  EXPECT_EQ(valid, 0b11111U);
  EXPECT_TRUE(std::isnan(xs[2])) << "the point along an empty line is an empty point";
  EXPECT_EQ(xs[3], walks.xs[130]);
  const int rows[] = {0, 1, 4};
  launch({1}, 64, [&] {
    locate_along({5, {nullptr}, {xs, ys}}, walks.column(), walks.until.data(), {3, rows, rows}, along);
  });
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(along[i], walks.length(rows[i]) / 2, 1e-9);
}

TEST(LineKernels, DensifyKeepsLine) {
  const Walks walks;
  std::vector<int> counts(5), offsets{0};
  launch({1}, 64, [&] { densify_counts(walks.column(), 0.1, counts.data()); });
  for (const int count : counts) offsets.push_back(offsets.back() + count);
  std::vector<double> xs(static_cast<std::size_t>(offsets.back()), not_a_number()), ys(xs);
  launch({1}, 64, [&] { densify(walks.column(), 0.1, offsets.data(), xs.data(), ys.data()); });
  for (int row = 0; row < 5; ++row) {
    double length = 0;
    for (int i = offsets[row]; i + 1 < offsets[row + 1]; ++i) {
      const double step = distance(Point{xs[i], ys[i]}, Point{xs[i + 1], ys[i + 1]});
      EXPECT_LE(step, 0.1 + 1e-12);
      length += step;
    }
    EXPECT_NEAR(length, walks.length(row), 1e-9);
  }
}

TEST(LineKernels, ComputeParallelWithMiteredCorners) {
  const double xs[] = {0, 1, 1}, ys[] = {0, 0, 1};
  const int offsets[] = {0, 3};
  double x[3], y[3];
  launch({1}, 32, [&] { lines_beside({1, {nullptr}, offsets, {xs, ys}}, 3, 0.1, 5, x, y); });
  const double expected_x[] = {0, 0.9, 0.9}, expected_y[] = {0.1, 0.1, 1};
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(x[i], expected_x[i], 1e-12);
    EXPECT_NEAR(y[i], expected_y[i], 1e-12);
  }
}

}  // namespace
}  // namespace kiln::test
