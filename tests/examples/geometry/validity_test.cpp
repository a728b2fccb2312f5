// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/cuda_on_host.hpp"

#include "validity.cu"

namespace kiln::test {
namespace {

unsigned problems_of(const std::vector<double>& xs, const std::vector<double>& ys, const std::vector<int>& offsets) {
  const int count = static_cast<int>(offsets.size()) - 1;
  const int rings[] = {0, count};
  const Polygons polygons{1, {nullptr}, rings, offsets.data(), {xs.data(), ys.data()}};
  unsigned problems = 0;
  launch({1}, 32, [&] { check_coordinates(polygons, count, &problems); });
  launch({1}, 64, [&] { check_area(polygons, count, &problems); });
  launch({static_cast<unsigned>(count)}, 32, [&] { check_crossings(polygons, count, &problems); });
  launch({1}, 32, [&] { check_rings(polygons, &problems); });
  launch({1}, 32, [&] { check_holes(polygons, count, &problems); });
  return problems;
}

TEST(ValidityKernels, ReportPolygonDefects) {
  EXPECT_EQ(problems_of({0, 1, 1, 0, 0}, {0, 0, 1, 1, 0}, {0, 5}), 0U);
  EXPECT_EQ(problems_of({0, 1, 0, 1, 0}, {0, 1, 1, 0, 0}, {0, 5}), kCrossing);
  EXPECT_EQ(problems_of({0, 1, 1, 0}, {0, 0, 1, 1}, {0, 4}), kOpen);
  EXPECT_EQ(problems_of({0, 1, 0}, {0, 1, 0}, {0, 3}), kTooShort);
  EXPECT_EQ(problems_of({0, 1, infinity(), 0, 0}, {0, 0, 1, 1, 0}, {0, 5}), kNotFinite);
  EXPECT_EQ(problems_of({0, 1, 1, 1, 0, 0}, {0, 0, 0, 1, 1, 0}, {0, 6}), kRepeated);
  EXPECT_EQ(problems_of({0, 2, 2, 1, 2, 0, 0}, {0, 0, 1, 1, 1, 2, 0}, {0, 7}), kCrossing) << "a spike";
  EXPECT_EQ(problems_of({0, 1, 2, 0}, {0, 1, 2, 0}, {0, 4}) & kNoArea, kNoArea);
}

TEST(ValidityKernels, ReportHoleDefects) {
  const std::vector<double> ys = {0, 0, 4, 4, 0, 1, 2, 2, 1, 1};
  EXPECT_EQ(problems_of({0, 4, 4, 0, 0, 1, 1, 2, 2, 1}, ys, {0, 5, 10}), 0U);
  EXPECT_EQ(problems_of({0, 4, 4, 0, 0, 5, 5, 6, 6, 5}, ys, {0, 5, 10}), kHoleOutside);
  EXPECT_EQ(problems_of({0, 4, 4, 0, 0, 3, 3, 6, 6, 3}, ys, {0, 5, 10}), kRingsCross);
  EXPECT_EQ(problems_of({0, 9, 9, 0, 0, 1, 1, 8, 8, 1, 2, 2, 3, 3, 2}, {0, 0, 9, 9, 0, 1, 8, 8, 1, 1, 2, 3, 3, 2, 2},
                        {0, 5, 10, 15}),
            kHoleInHole);
}

}  // namespace
}  // namespace kiln::test
