// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "support/fixtures/cuda_on_host.hpp"

#include "bounds.cu"

namespace kiln::test {
namespace {

TEST(BoundsKernels, DistinguishNullAndEmpty) {
  const double xs[] = {3, 1, 2}, ys[] = {5, 6, 4};
  const int offsets[] = {0, 3, 3, 3};
  const unsigned valid = 0b011;
  const Lines lines{3, {&valid}, offsets, {xs, ys}};
  double boxes[12], long_boxes[12];
  unsigned known = 0;
  unsigned char states[3];
  launch({1}, 32, [&] { bounds_of(lines, boxes, &known); });
  launch({1}, 64, [&] { bounds_of_long(lines, long_boxes, states); });
  EXPECT_EQ(known, valid);
  for (const double* each : {boxes, long_boxes}) {
    EXPECT_EQ(each[0], 1);
    EXPECT_EQ(each[9], 6);
    EXPECT_GT(each[1], each[7]) << "the box of an empty row contains nothing";
    EXPECT_TRUE(std::isnan(each[2])) << "the box of a null row is NaN";
  }
}

TEST(BoundsKernels, FindEveryOverlap) {
  constexpr int kLeft = 100, kRight = 300;
  std::mt19937 random(2);
  std::uniform_real_distribution<double> place(0, 10), size(0, 1);
  std::vector<double> left(4 * kLeft), right(4 * kRight);
  const auto fill = [&](std::vector<double>& boxes, int rows) {
    for (int row = 0; row < rows; ++row) {
      const Point p = {place(random), place(random)};
      store(boxes.data(), rows, row, row % 7 == 3 ? null_box() : Box{p.x, p.y, p.x + size(random), p.y + size(random)});
    }
  };
  fill(left, kLeft);
  fill(right, kRight);
  std::vector<int> counts(kLeft), offsets{0}, expected_left, expected_right;
  launch({2}, 64, [&] { bounds_count_overlaps(left.data(), kLeft, right.data(), kRight, 0.1, counts.data()); });
  for (const int count : counts) offsets.push_back(offsets.back() + count);
  for (int i = 0; i < kLeft; ++i) {
    const Box b = load(left.data(), kLeft, i);
    for (int k = 0; k < kRight; ++k) {
      if (!overlap({b.min_x - 0.1, b.min_y - 0.1, b.max_x + 0.1, b.max_y + 0.1}, load(right.data(), kRight, k)))
        continue;
      expected_left.push_back(i);
      expected_right.push_back(k);
    }
  }
  std::vector<int> found_left(static_cast<std::size_t>(offsets.back())), found_right(found_left);
  launch({2}, 64, [&] {
    bounds_fill_overlaps(left.data(), kLeft, right.data(), kRight, 0.1, offsets.data(), found_left.data(),
                         found_right.data());
  });
  EXPECT_EQ(found_left, expected_left);
  EXPECT_EQ(found_right, expected_right);
}

TEST(BoundsKernels, ReduceCoordinatesToOneBoxPerBlock) {
  std::vector<double> coordinates(2000, 0.5), boxes(4 * 3);
  coordinates[1000] = -3;
  coordinates[1001] = 7;
  coordinates[20] = coordinates[21] = not_a_number();
  launch({3}, 64, [&] { bounds_reduce<double, 4>(coordinates.data(), 1000, boxes.data()); });
  EXPECT_EQ(std::min({boxes[0], boxes[4], boxes[8]}), -3);
  EXPECT_EQ(std::max({boxes[3], boxes[7], boxes[11]}), 7);
}

}  // namespace
}  // namespace kiln::test
