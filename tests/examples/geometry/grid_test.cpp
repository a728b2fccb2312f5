// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "support/fixtures/cuda_on_host.hpp"

#include "grid.cu"

namespace kiln::test {
namespace {

constexpr Grid kGrid = {{0, 0, 10, 10}, 7, 5};

// Returns boxes, some of which are null and some empty.
std::vector<double> random_boxes(unsigned seed, int rows) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> place(0, 10), size(0, 2);
  std::vector<double> boxes(static_cast<std::size_t>(4 * rows));
  for (int row = 0; row < rows; ++row) {
    const Point p = {place(random), place(random)};
    Box box = {p.x, p.y, p.x + size(random), p.y + size(random)};
    if (row % 9 == 4) box = null_box();
    if (row % 9 == 5) box = empty_box();
    const double sides[] = {box.min_x, box.min_y, box.max_x, box.max_y};
    for (int side = 0; side < 4; ++side) boxes[static_cast<std::size_t>(side * rows + row)] = sides[side];
  }
  return boxes;
}

TEST(GridKernels, FindEveryOverlappingPairOnce) {
  constexpr int kBoxes = 200, kQueries = 40;
  const std::vector<double> boxes = random_boxes(8, kBoxes), queries = random_boxes(9, kQueries);
  std::vector<int> counts(35), cells(kBoxes), offsets{0}, found(kQueries), expected(kQueries);
  launch({1}, 64, [&] { grid_count_boxes(boxes.data(), kBoxes, kGrid, counts.data(), cells.data()); });
  for (const int count : counts) offsets.push_back(offsets.back() + count);
  std::vector<int> next(offsets.begin(), offsets.end() - 1), members(static_cast<std::size_t>(offsets.back()));
  launch({1}, 64, [&] { grid_fill_boxes(boxes.data(), kBoxes, kGrid, next.data(), members.data()); });
  launch({1}, 64, [&] {
    grid_candidates(queries.data(), kQueries, boxes.data(), kBoxes, kGrid, offsets.data(), members.data(), found.data(),
                    nullptr, nullptr, nullptr);
  });
  for (int query = 0; query < kQueries; ++query) {
    for (int row = 0; row < kBoxes; ++row) {
      const bool both = overlap(box_at(queries.data(), kQueries, query), box_at(boxes.data(), kBoxes, row));
      expected[static_cast<std::size_t>(query)] += both ? 1 : 0;
    }
  }
  EXPECT_EQ(found, expected);
}

TEST(GridKernels, HilbertCodesVisitAdjacentCells) {
  constexpr int kSide = 32;
  std::vector<int> cells(kSide * kSide, -1);
  for (unsigned x = 0; x < kSide; ++x) {
    for (unsigned y = 0; y < kSide; ++y) cells[along_hilbert(x, y, 5)] = static_cast<int>(x * kSide + y);
  }
  for (std::size_t i = 1; i < cells.size(); ++i) {
    ASSERT_GE(cells[i], 0);
    EXPECT_EQ(std::abs(cells[i] / kSide - cells[i - 1] / kSide) + std::abs(cells[i] % kSide - cells[i - 1] % kSide), 1);
  }
}

TEST(GridKernels, SortNullAndEmptyPointsLast) {
  const double xs[] = {0, 10, not_a_number(), 3}, ys[] = {0, 10, not_a_number(), 3};
  const unsigned valid = 0b0111;
  unsigned codes[4];
  launch({1}, 32, [&] { morton_codes<unsigned>({4, {&valid}, {xs, ys}}, {0, 0, 11, 11}, codes); });
  EXPECT_EQ(codes[0], 0U);
  EXPECT_LT(codes[1], codes[2]);
  EXPECT_EQ(codes[2], ~0U);
  EXPECT_EQ(codes[3], ~0U);
}

}  // namespace
}  // namespace kiln::test
