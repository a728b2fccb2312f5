// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/cuda_on_host.hpp"

#include "clip.cu"

namespace kiln::test {
namespace {

TEST(ClipKernels, ClipRingToWindow) {
  const double xs[] = {-1, 3, 3, -1, -1}, ys[] = {0.5, 0.5, 1.5, 1.5, 0.5};
  const int offsets[] = {0, 5};
  const Lines rings{1, {nullptr}, offsets, {xs, ys}};
  const Box window = {0, 0, 2, 1};
  int count = 0;
  launch({1}, 32, [&] { clip_count_rings(rings, window, &count); });
  ASSERT_EQ(count, 5);
  const int firsts[] = {0, count};
  double x[5], y[5];
  launch({1}, 32, [&] { clip_fill_rings(rings, window, firsts, x, y); });
  EXPECT_EQ(std::vector<double>(x, x + 5), (std::vector<double>{0, 2, 2, 0, 0}));
  EXPECT_EQ(std::vector<double>(y, y + 5), (std::vector<double>{0.5, 0.5, 1, 1, 0.5}));
}

TEST(ClipKernels, SplitLineIntoPiecesAndIgnoreTouches) {
  // One line inside, out over the right edge and in again; one that touches a corner; one that is inside.
  const double xs[] = {1, 3, 3, 1, -1, 1, 0.5, 1.5}, ys[] = {0.2, 0.2, 0.8, 0.8, 0, 2, 0.5, 0.5};
  const int offsets[] = {0, 4, 6, 8};
  const Lines lines{3, {nullptr}, offsets, {xs, ys}};
  const Box window = {0, 0, 2, 1};
  const unsigned char places[] = {3, 3, 2};
  int pieces[3], coordinates[3];
  launch({1}, 32, [&] { clip_count_lines(lines, window, places, pieces, coordinates); });
  EXPECT_EQ(std::vector<int>(pieces, pieces + 3), (std::vector<int>{2, 0, 1}));
  EXPECT_EQ(std::vector<int>(coordinates, coordinates + 3), (std::vector<int>{4, 0, 2}));
  const int first_lines[] = {0, 2, 2, 3}, first_coordinates[] = {0, 4, 4, 6};
  int out[4];
  double x[6], y[6];
  launch({1}, 32, [&] { clip_fill_lines(lines, window, places, first_lines, first_coordinates, out, x, y); });
  EXPECT_EQ(std::vector<int>(out, out + 4), (std::vector<int>{0, 2, 4, 6}));
  EXPECT_EQ(std::vector<double>(x, x + 6), (std::vector<double>{1, 2, 2, 1, 0.5, 1.5}));
}

}  // namespace
}  // namespace kiln::test
