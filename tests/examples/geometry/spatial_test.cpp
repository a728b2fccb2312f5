// SPDX-License-Identifier: Apache-2.0
// Runs the kernels of examples/spatial/kernels/spatial and examples/spatial/kernels/primitives in the order of
// examples/spatial, in memory of exactly their sizes. A sanitizer detects errors here that the fake driver of
// tests/examples cannot.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "support/fixtures/cuda_on_host.hpp"

#include "primitives/compact.cu"
#include "primitives/scan.cu"
#include "spatial/candidates.cu"
#include "spatial/grid.cu"
#include "spatial/pairs.cu"
#include "spatial/point_bounds.cu"
#include "spatial/polygon_bounds.cu"
#include "spatial/refine.cu"
#include "spatial/within.cu"

namespace kiln::test {
namespace {

using Key = unsigned long long;

constexpr int kPointRows = 70;
constexpr int kPolygonRows = 37;
constexpr int kFinest = 3;
constexpr int kCells = 64 + 16 + 4 + 1;
constexpr int kBits = 6;

// Triangles, of which every fifth is null and every seventh empty, and one covers all of them. Some of the points are
// null, some are empty, and some are on vertices.
struct Layer {
  Layer() {
    std::mt19937 random(11);
    std::uniform_real_distribution<double> place(0, 10);
    for (int row = 0; row < kPolygonRows; ++row) {
      const bool null = row % 5 == 3;
      if (!null) valid_polygons[static_cast<std::size_t>(row / 32)] |= 1U << (row % 32);
      if (!null && row % 7 != 1) add_triangle({place(random), place(random)}, row == 0 ? 40 : 1.5);
      rings.push_back(static_cast<int>(offsets.size()) - 1);
    }
    for (int row = 0; row < kPointRows; ++row) {
      const bool empty = row % 11 == 4;
      const std::size_t vertex = static_cast<std::size_t>(row) % xs.size();
      px.push_back(empty ? not_a_number() : row % 6 == 0 ? xs[vertex] : place(random));
      py.push_back(empty ? not_a_number() : row % 6 == 0 ? ys[vertex] : place(random));
      if (row % 13 != 7) valid_points[static_cast<std::size_t>(row / 32)] |= 1U << (row % 32);
    }
    launch({blocks(kPolygonRows)}, 32, [&] {
      polygon_bounds(kPolygonRows, valid_polygons.data(), rings.data(), offsets.data(), xs.data(), ys.data(),
                     sides.data());
    });
  }
  void add_triangle(Point at, double reach) {
    for (const Point corner : {Point{-1, -1}, Point{1, -1}, Point{0, 1}, Point{-1, -1}}) {
      xs.push_back(at.x + reach * corner.x);
      ys.push_back(at.y + reach * corner.y);
    }
    offsets.push_back(static_cast<int>(xs.size()));
  }
  static unsigned blocks(int items) { return static_cast<unsigned>((items + 31) / 32); }
  bool present(int point) const { return Validity{valid_points.data()}[point] && is_number(px[at(point)]); }
  bool contains(int polygon, int point) const {
    return present(point) &&
           is_inside({px[at(point)], py[at(point)]}, rings.data(), offsets.data(), {xs.data(), ys.data()}, polygon);
  }
  static std::size_t at(int row) { return static_cast<std::size_t>(row); }

  std::vector<double> xs, ys, px, py, sides = std::vector<double>(4 * kPolygonRows);
  std::vector<int> offsets{0}, rings{0};
  std::vector<unsigned> valid_polygons = std::vector<unsigned>(2), valid_points = std::vector<unsigned>(3);
};

// Behaves like CCCL's scan of one extra element.
void scan(std::vector<unsigned>& values) { std::exclusive_scan(values.begin(), values.end(), values.begin(), 0U); }

TEST(SpatialKernels, JoinMatchesBruteForce) {
  const Layer layer;
  Grid grid{};
  std::vector<unsigned> ends(kCells + 1), offsets(kPointRows + 1);
  launch({2}, 32, [&] { grid_begin(kPolygonRows, layer.sides.data(), kFinest, &grid, kCells, ends.data()); });
  launch({2}, 32, [&] { grid_count(kPolygonRows, layer.sides.data(), kFinest, &grid, ends.data()); });
  scan(ends);
  unsigned entries = 0;
  launch({1}, 32, [&] { scan_total(kCells, ends.data(), &entries); });
  std::vector<int> members(entries);
  launch({2}, 32, [&] { grid_fill(kPolygonRows, layer.sides.data(), kFinest, &grid, ends.data(), members.data()); });
  launch({3}, 32, [&] {
    candidates_count(kPointRows, layer.valid_points.data(), layer.px.data(), layer.py.data(), kPolygonRows,
                     layer.sides.data(), kFinest, &grid, ends.data(), members.data(), offsets.data());
  });
  scan(offsets);
  const unsigned count = offsets.back();
  std::vector<Key> keys(count);
  launch({3}, 32, [&] {
    candidates_write(kPointRows, layer.valid_points.data(), layer.px.data(), layer.py.data(), kPolygonRows,
                     layer.sides.data(), kFinest, &grid, ends.data(), members.data(), offsets.data(), kBits,
                     keys.data());
  });
  std::vector<unsigned char> flags(count);
  launch({Layer::blocks(static_cast<int>(count))}, 32, [&] {
    refine_candidates(count, keys.data(), kBits, layer.px.data(), layer.py.data(), layer.rings.data(),
                      layer.offsets.data(), layer.xs.data(), layer.ys.data(), flags.data());
  });
  std::vector<Key> found, expected;
  for (unsigned i = 0; i < count; ++i) {
    if (flags[i] != 0) found.push_back(keys[i]);
  }
  std::sort(found.begin(), found.end());
  for (int point = 0; point < kPointRows; ++point) {
    for (int polygon = 0; polygon < kPolygonRows; ++polygon) {
      if (layer.contains(polygon, point))
        expected.push_back(static_cast<Key>(point) << kBits | static_cast<Key>(polygon));
    }
  }
  EXPECT_EQ(found, expected);
  EXPECT_GT(expected.size(), 50U);
  EXPECT_LE(entries, 16U * kPolygonRows) << "the large one also has at most 16 entries";

  std::vector<int> pairs(2 * found.size());
  const auto rows = static_cast<unsigned>(found.size());
  launch({Layer::blocks(static_cast<int>(rows))}, 32, [&] { pairs_of_keys(rows, found.data(), kBits, pairs.data()); });
  EXPECT_EQ(pairs[2], static_cast<int>(found[1] >> kBits));
  EXPECT_EQ(pairs[3], static_cast<int>(found[1] & ((1U << kBits) - 1)));
}

TEST(SpatialKernels, WithinMatchesBruteForceAndPropagatesNull) {
  const Layer layer;
  constexpr int kRows = kPolygonRows;
  std::vector<unsigned> valid(2), inside(2), chosen(kRows);
  std::vector<unsigned char> flags(kRows);
  launch({1}, 32, [&] {
    within_filter(kRows, 1, layer.valid_points.data(), layer.px.data(), layer.py.data(), kPolygonRows,
                  layer.valid_polygons.data(), layer.sides.data(), valid.data(), inside.data(), flags.data());
  });
  // Behaves like CCCL's selection of the numbers.
  std::vector<int> numbers(kRows);
  launch({2}, 32, [&] { compact_numbers(kRows, flags.data(), numbers.data()); });
  const auto last =
      std::copy_if(numbers.begin(), numbers.end(), chosen.begin(), [](int number) { return number != 0; });
  const long long selected = last - chosen.begin();
  unsigned count = 0;
  launch({2}, 32, [&] { compact_indices(kRows, &selected, chosen.data(), &count); });
  EXPECT_EQ(count, std::count(flags.begin(), flags.end(), 1));
  launch({2}, 32, [&] {
    within_refine(&count, chosen.data(), 1, layer.px.data(), layer.py.data(), layer.rings.data(), layer.offsets.data(),
                  layer.xs.data(), layer.ys.data(), inside.data());
  });
  int found = 0;
  for (int row = 0; row < kRows; ++row) {
    const bool known = Validity{layer.valid_points.data()}[row] && Validity{layer.valid_polygons.data()}[row];
    EXPECT_EQ(Validity{valid.data()}[row], known) << row;
    if (!known) continue;
    EXPECT_EQ(Validity{inside.data()}[row], layer.contains(row, row)) << row;
    found += layer.contains(row, row) ? 1 : 0;
  }
  EXPECT_GT(found, 0);
}

TEST(SpatialKernels, PointBoxesDistinguishNullAndEmpty) {
  const Layer layer;
  std::vector<double> sides(4 * kPointRows);
  launch({3}, 32,
         [&] { point_bounds(kPointRows, layer.valid_points.data(), layer.px.data(), layer.py.data(), sides.data()); });
  EXPECT_FALSE(is_number(sides[7])) << "null";
  EXPECT_EQ(sides[4], infinity()) << "empty";
  EXPECT_EQ(sides[2 * kPointRows + 4], -infinity());
  EXPECT_EQ(sides[kPointRows], layer.py[0]);
}

}  // namespace
}  // namespace kiln::test
