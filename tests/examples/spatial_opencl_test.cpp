// SPDX-License-Identifier: Apache-2.0
// Compares the operations of examples/spatial on PoCL, which really executes them, with GEOS.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include <kiln/runtime.hpp>

#include "examples/spatial_device.hpp"
#include "spatial/device/device_column.hpp"
#include "spatial/operations.hpp"
#include "support/fixtures/geos_oracle.hpp"

namespace kiln::test {
namespace {

class SpatialOnOpenCl : public testing::Test {
 protected:
  // Every operation runs on the device or fails.
  runtime::Runtime runtime_ = SpatialSession::shared().runtime();
};

// Like expect_equal_to_geos, for columns on the device and results that stay there.
void expect_resident_equal_to_geos(runtime::Runtime& runtime, const std::shared_ptr<spatial::DeviceContext>& kit,
                                   const GeneratedSet& set) {
  const GeosOracle oracle(set);
  const SetColumns columns = read_columns(oracle);
  const std::size_t rows = std::min(columns.points.rows(), columns.polygons.rows());
  const auto points = upload(runtime, kit, columns.points).value();
  const auto polygons = upload(runtime, kit, columns.polygons).value();
  const auto first_points = upload(runtime, kit, rows_of(columns.points, 0, rows)).value();
  const auto first_polygons = upload(runtime, kit, rows_of(columns.polygons, 0, rows)).value();
  const auto boxes = spatial::bounds(runtime, polygons).value();
  const auto mask = spatial::within(runtime, first_points, first_polygons).value();
  const auto pairs = spatial::sjoin(runtime, points, polygons).value();
  ASSERT_TRUE(boxes.device != nullptr && mask.device != nullptr && pairs.device != nullptr);
  expect_equal(materialize(runtime, *boxes.device).value(), oracle.bounds_of_polygons(), set.name + ", polygons");
  expect_equal(materialize(runtime, *mask.device).value(), oracle.within_rows(), set.name + ", within");
  expect_equal(materialize(runtime, *pairs.device).value(), oracle.pairs(), set.name + ", sjoin");
}

TEST_F(SpatialOnOpenCl, EveryOperationEqualsGeosOnEveryGeneratedSet) {
  for (std::uint64_t number = 0; number < kGeneratedSets; ++number) {
    expect_equal_to_geos(runtime_, generated_set(number));
    ASSERT_FALSE(HasFatalFailure()) << number;
  }
  const auto counts = runtime_.counts();
  EXPECT_EQ(counts.fallbacks, 0U);
  EXPECT_GT(counts.on_device, 4 * kGeneratedSets);
}

TEST_F(SpatialOnOpenCl, EveryOperationEqualsGeosOnDeviceColumns) {
  const auto kit = spatial::DeviceContext::open(runtime_.session(), runtime::Backend::OpenCl).value();
  for (std::uint64_t number = 0; number < kGeneratedSets; ++number) {
    expect_resident_equal_to_geos(runtime_, kit, generated_set(number));
    ASSERT_FALSE(HasFatalFailure()) << number;
  }
}

// The plan selects fp64 for PoCL, so the fp32 variant is called directly, after its units are requested.
TEST_F(SpatialOnOpenCl, AreaInSinglePrecisionIsWithinItsBound) {
  runtime_.session().request(spatial::opencl::area_in_fp32_requirements);
  double largest = 0;
  for (std::uint64_t number = 0; number < kGeneratedSets; number += 5) {
    const GeneratedSet set = generated_set(number);
    const GeosOracle oracle(set);
    const spatial::PolygonColumn polygons = read_columns(oracle).polygons;
    runtime::Dispatch dispatch =
        runtime::Dispatch::begin(runtime_, spatial::kArea, {polygons.rows(), Residency::Host, runtime::Backend::Cpu})
            .value();
    EXPECT_EQ(dispatch.decision().precision, runtime::Precision::Fp64) << "PoCL computes fp64 well";
    const spatial::Areas areas = spatial::device::area_in_fp32(dispatch, polygons).value().host;
    expect_close(areas, oracle, polygons, runtime::Precision::Fp32, set.name + ", area in fp32");
    ASSERT_FALSE(HasFatalFailure()) << number;
    const spatial::Areas exact = oracle.areas();
    for (std::size_t row = 0; row < areas.rows(); ++row) {
      if (exact.values[row] > 0) largest = std::max(largest, std::fabs(areas.values[row] / exact.values[row] - 1));
    }
  }
  EXPECT_GT(largest, 1e-9) << "the variant must compute in single precision";
}

TEST_F(SpatialOnOpenCl, EveryOperationEqualsGeosWithoutRectangleRewrite) {
  runtime_.set_rewrites(false);
  for (std::uint64_t number = 0; number < kGeneratedSets; ++number) {
    if (static_cast<Ground>(number % kGrounds) != Ground::Rectangles) continue;
    expect_equal_to_geos(runtime_, generated_set(number));
  }
}

TEST_F(SpatialOnOpenCl, EveryOperationEqualsGeosOnManyPointsAndStars) {
  expect_equal_to_geos(runtime_, large_set_of_stars());
}

TEST_F(SpatialOnOpenCl, EveryOperationEqualsGeosOnManyPointsAndTouchingShapes) {
  expect_equal_to_geos(runtime_, large_set_that_touches());
}

TEST_F(SpatialOnOpenCl, EmptyColumnsGiveEmptyResults) {
  const spatial::PointColumn no_points;
  const spatial::PolygonColumn no_polygons;
  EXPECT_EQ(spatial::bounds(runtime_, no_points).value().host.rows(), 0U);
  EXPECT_EQ(spatial::bounds(runtime_, no_polygons).value().host.rows(), 0U);
  EXPECT_EQ(spatial::within(runtime_, no_points, no_polygons).value().host.valid.size(), 0U);
  EXPECT_TRUE(spatial::sjoin(runtime_, no_points, no_polygons).value().host.empty());
  spatial::PointColumn points;
  points.add({1, 2});
  EXPECT_TRUE(spatial::sjoin(runtime_, points, no_polygons).value().host.empty());
}

TEST_F(SpatialOnOpenCl, NullAndEmptyDifferAndAreNotWithin) {
  spatial::PointColumn points;
  points.add({1, 1});
  points.add_null();
  points.add_empty();
  spatial::PolygonColumn polygons;
  polygons.add_null();
  polygons.end_row();
  polygons.add_ring({{0, 0}, {4, 0}, {4, 4}, {0, 0}});
  polygons.end_row();
  const spatial::Mask mask = spatial::within(runtime_, points, polygons).value().host;
  EXPECT_EQ(mask.inside.count(), 0U);
  EXPECT_FALSE(mask.valid[0]) << "the polygon is null";
  EXPECT_FALSE(mask.valid[1]) << "the point is null";
  EXPECT_TRUE(mask.valid[2]) << "an empty point is not within, which is valid";
  const spatial::Boxes of_points = spatial::bounds(runtime_, points).value().host;
  const spatial::Boxes of_polygons = spatial::bounds(runtime_, polygons).value().host;
  EXPECT_TRUE(of_points.null(1) && of_points.empty(2));
  EXPECT_TRUE(of_polygons.null(0) && of_polygons.empty(1));
}

TEST_F(SpatialOnOpenCl, LargePolygonsHaveBoundedGridEntries) {
  spatial::PolygonColumn polygons;
  spatial::PointColumn points;
  spatial::Pairs expected;
  for (int i = 0; i < 300; ++i) {
    const double reach = 1000 + i;
    polygons.add_ring({{-reach, -reach}, {reach, -reach}, {0, reach}, {-reach, -reach}});
    polygons.end_row();
  }
  for (int i = 0; i < 300; ++i) {
    points.add({i * 0.01, i * 0.01});
    for (int polygon = 0; polygon < 300; ++polygon) expected.push_back({i, polygon});
  }
  (void)SpatialSession::shared().take_events();
  EXPECT_EQ(spatial::sjoin(runtime_, points, polygons).value().host, expected);
  // The first scalar of the join is the number of entries.
  bool read = false;
  for (const Event& event : SpatialSession::shared().take_events()) {
    if (event.context.stage == "index" && event.kind == Event::Kind::Copied) read = true;
    if (!read || event.kind != Event::Kind::Allocated) continue;
    EXPECT_LE(event.bytes, 300U * 16 * sizeof(std::int32_t));
    return;
  }
  ADD_FAILURE() << "no allocation follows the read of a scalar";
}

TEST_F(SpatialOnOpenCl, AllUsedUnitsAreDeclared) {
  const GeneratedSet set = generated_set(20);
  expect_equal_to_geos(runtime_, set);
  for (const UndeclaredUse& use : runtime_.session().undeclared()) {
    const bool by_primitives = use.caller.find("primitives_test") != std::string::npos;
    EXPECT_TRUE(by_primitives) << use.unit << ", " << use.entry << " by " << use.caller;
  }
}

}  // namespace
}  // namespace kiln::test
