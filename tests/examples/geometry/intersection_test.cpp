// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/cuda_on_host.hpp"

#include "intersection.cu"

namespace kiln::test {
namespace {

TEST(IntersectionKernels, ClassifySegmentMeetings) {
  // Relative to (0, 0) – (4, 4): crosses, touches with an end, overlaps, is collinear and apart, is parallel.
  const double left_x[] = {0, 4}, left_y[] = {0, 4};
  const double right_x[] = {0, 2, 2, 5, 2, 6, 5, 6, 0, 4}, right_y[] = {2, 0, 2, 0, 2, 6, 5, 6, 1, 5};
  const int left[] = {0, 0, 0, 0, 0}, right[] = {0, 2, 4, 6, 8};
  const Coordinates a = {left_x, left_y}, b = {right_x, right_y};
  unsigned char how[5];
  launch({1}, 32, [&] { segments_meet(a, b, {5, left, right}, how); });
  const Meeting expected[] = {Meeting::Cross, Meeting::Touch, Meeting::Overlap, Meeting::Apart, Meeting::Apart};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(static_cast<Meeting>(how[i]), expected[i]) << i;
  double from_x[5], from_y[5], to_x[5], to_y[5];
  launch({1}, 32, [&] { segments_meeting_points(a, b, {5, left, right}, how, from_x, from_y, to_x, to_y); });
  EXPECT_EQ(from_x[0], 1);
  EXPECT_EQ(to_y[0], 1);
  EXPECT_EQ(from_x[1], 2);
  EXPECT_EQ(std::min(from_x[2], to_x[2]), 2);
  EXPECT_EQ(std::max(from_x[2], to_x[2]), 4);
  EXPECT_TRUE(std::isnan(from_x[3]));
}

TEST(IntersectionKernels, DetectIntersectingAndContainedPolygons) {
  const double xs[] = {0, 4, 4, 0, 0, 3, 6, 6, 3, 3, 1, 2, 2, 1, 1, 8, 9, 9, 8, 8};
  const double ys[] = {0, 0, 4, 4, 0, 3, 3, 6, 6, 3, 1, 1, 2, 2, 1, 8, 8, 9, 9, 8};
  const int rings[] = {0, 1, 2, 3, 4, 4};
  const int offsets[] = {0, 5, 10, 15, 20};
  const Polygons polygons{5, {nullptr}, rings, offsets, {xs, ys}};
  const int left[] = {0, 0, 2, 0, 0}, right[] = {1, 2, 0, 3, 4};  // the last polygon is empty
  unsigned char answers[5];
  launch({5}, 32, [&] { polygons_intersect(polygons, polygons, {5, left, right}, answers); });
  EXPECT_EQ(std::vector<int>(answers, answers + 5), (std::vector<int>{1, 1, 1, 0, 0}));
  const Lines lines{4, {nullptr}, offsets, {xs, ys}};
  launch({1}, 64, [&] { lines_intersect(lines, lines, {4, left, right}, answers); });
  EXPECT_EQ(std::vector<int>(answers, answers + 4), (std::vector<int>{1, 0, 0, 0}));
  int counts[1];
  launch({1}, 32, [&] { segments_count_candidates(lines, lines, {1, left, right}, counts); });
  std::vector<int> l(static_cast<std::size_t>(counts[0])), r(l);
  const int first[] = {0};
  launch({1}, 32, [&] { segments_fill_candidates(lines, lines, {1, left, right}, first, l.data(), r.data()); });
  EXPECT_EQ(counts[0], 2) << "two edges of each polygon cross one of the other";
}

}  // namespace
}  // namespace kiln::test
