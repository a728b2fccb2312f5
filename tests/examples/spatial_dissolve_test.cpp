// SPDX-License-Identifier: Apache-2.0
// `dissolve` and `to_wkb` on the CPU, compared with GEOS.
#include <gtest/gtest.h>

#include "spatial/operations.hpp"
#include "support/fixtures/coverage.hpp"

namespace kiln::test {
namespace {

class SpatialDissolve : public testing::Test {
 protected:
  static runtime::RuntimeOptions on_cpu() {
    runtime::RuntimeOptions options;
    options.mode = runtime::Mode::Cpu;
    return options;
  }
  spatial::Dissolved dissolved(const spatial::PolygonColumn& polygons, const std::vector<std::int32_t>& keys) {
    return spatial::dissolve(runtime_, polygons, spatial::KeyColumn{keys}).value().host;
  }

  runtime::Runtime runtime_{Session::open().value(), on_cpu()};
};

spatial::PolygonColumn squares_at(const std::vector<spatial::Point>& corners) {
  spatial::PolygonColumn column;
  for (const auto& [x, y] : corners) {
    column.add_ring({{x, y}, {x + 1, y}, {x + 1, y + 1}, {x, y + 1}, {x, y}});
    column.end_row();
  }
  return column;
}

TEST_F(SpatialDissolve, EqualsCoverageUnionOfGeos) {
  std::size_t holes = 0;
  std::size_t parts = 0;
  for (std::uint64_t number = 0; number < kCoverages; ++number) {
    const CoverageSet set = coverage(number);
    const auto result = spatial::dissolve(runtime_, polygons_of(set), set.keys);
    ASSERT_TRUE(result.has_value()) << number << ": " << result.error().message;
    const spatial::PolygonColumn& polygons = result->host.polygons;
    expect_union(result->host, set, std::to_string(number));
    ASSERT_FALSE(HasFailure()) << number;
    parts += polygons.shells.count();
    holes += polygons.shells.size() - polygons.shells.count();
  }
  EXPECT_GT(holes, 30U);
  EXPECT_GT(parts, 100U);
}

TEST_F(SpatialDissolve, MergesSharedEdgesAndKeepsPartsThatTouchInCorner) {
  const spatial::Dissolved result = dissolved(squares_at({{0, 0}, {1, 0}, {2, 1}, {5, 5}}), {4, 4, 4, -2});
  EXPECT_EQ(result.keys.values, (std::vector<std::int32_t>{-2, 4}));
  EXPECT_EQ(result.polygons.rings, (std::vector<std::int32_t>{0, 1, 3}));
  EXPECT_EQ(result.polygons.offsets, (std::vector<std::int32_t>{0, 5, 12, 17}));
  EXPECT_EQ(result.polygons.shells.count(), 3U);
}

TEST_F(SpatialDissolve, SeparatesHoleThatTouchesShell) {
  // A square of nine cells without the one in the middle and without the one in a corner: they touch in a vertex.
  std::vector<spatial::Point> corners;
  for (int i = 0; i < 9; ++i) {
    if (i != 0 && i != 4) corners.push_back({static_cast<double>(i % 3), static_cast<double>(i / 3)});
  }
  const spatial::Dissolved result = dissolved(squares_at(corners), std::vector<std::int32_t>(corners.size(), 1));
  ASSERT_EQ(result.polygons.rings, (std::vector<std::int32_t>{0, 2}));
  EXPECT_TRUE(result.polygons.shells[0]);
  EXPECT_FALSE(result.polygons.shells[1]);
  EXPECT_EQ(result.polygons.offsets[2] - result.polygons.offsets[1], 5);
}

TEST_F(SpatialDissolve, NullAndEmptyDiffer) {
  spatial::PolygonColumn polygons = squares_at({{0, 0}});
  polygons.add_null();
  polygons.add_null();
  polygons.end_row();
  const spatial::Dissolved result = dissolved(polygons, {1, 1, 2, 3});
  EXPECT_EQ(result.keys.values, (std::vector<std::int32_t>{1, 2, 3}));
  EXPECT_FALSE(result.polygons.null(0) || result.polygons.empty(0));
  EXPECT_TRUE(result.polygons.null(1));
  EXPECT_TRUE(result.polygons.empty(2));
  EXPECT_EQ(dissolved({}, {}).polygons.rows(), 0U);
}

TEST_F(SpatialDissolve, RejectsEdgesThatOccurTooOften) {
  const auto code = [&](const spatial::PolygonColumn& polygons, std::size_t keys) -> std::optional<Code> {
    const auto result = spatial::dissolve(runtime_, polygons, spatial::KeyColumn{std::vector<std::int32_t>(keys)});
    if (result) return std::nullopt;
    return result.error().code;
  };
  EXPECT_EQ(code(squares_at({{0, 0}, {0, 0}}), 2), Code::InvalidArgument) << "the same polygon twice";
  EXPECT_EQ(code(squares_at({{0, 0}, {1, 0}, {0, 0}}), 3), Code::InvalidArgument) << "an edge three times";
  EXPECT_EQ(code(squares_at({{0, 0}, {1, 0}}), 1), Code::InvalidArgument) << "fewer keys than polygons";
  EXPECT_EQ(code(squares_at({{0, 0}, {spatial::kNotANumber, 0}}), 2), Code::InvalidArgument) << "NaN";
  EXPECT_EQ(code(squares_at({{0, 0}, {1, 0}}), 2), std::nullopt);
}

TEST_F(SpatialDissolve, ResultCanBeWrittenAndReadAgain) {
  for (std::uint64_t number = 0; number < kCoverages; number += 7) {
    const CoverageSet set = coverage(number);
    const spatial::PolygonColumn polygons =
        spatial::dissolve(runtime_, polygons_of(set), set.keys).value().host.polygons;
    const spatial::WkbColumn wkb = spatial::to_wkb(runtime_, polygons).value().host;
    std::vector<spatial::Wkb> rows;
    for (std::size_t row = 0; row < wkb.rows(); ++row) rows.push_back(wkb[row]);
    const spatial::PolygonColumn again = spatial::read_polygons(rows).value();
    EXPECT_EQ(again.rings, polygons.rings);
    EXPECT_EQ(again.offsets, polygons.offsets);
    EXPECT_EQ(again.valid, polygons.valid);
    EXPECT_EQ(again.shells, polygons.shells);
    EXPECT_EQ(again.x, polygons.x);
  }
}

TEST_F(SpatialDissolve, WkbOfNullHasNoBytesAndOfEmptyHasHeader) {
  spatial::PolygonColumn polygons;
  polygons.add_null();
  polygons.end_row();
  const spatial::WkbColumn wkb = spatial::to_wkb(runtime_, polygons).value().host;
  EXPECT_EQ(wkb[0], std::nullopt);
  EXPECT_EQ(wkb[1], std::string("\x01\x03\0\0\0\0\0\0\0", 9));
  EXPECT_EQ(wkb.offsets, (std::vector<std::uint32_t>{0, 0, 9}));
}

}  // namespace
}  // namespace kiln::test
