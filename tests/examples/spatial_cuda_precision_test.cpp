// SPDX-License-Identifier: Apache-2.0
// The precision plan for the CUDA variants of `spatial::area`, on the fake driver.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "examples/spatial_cuda.hpp"
#include "support/fixtures/geos_oracle.hpp"

namespace kiln::test {
namespace {

using SpatialPrecision = SpatialCuda;

/// A device that computes fp64 at 1/64 of the rate of fp32.
class SpatialOnSlowFp64 : public SpatialCuda {
 protected:
  SpatialOnSlowFp64() { driver_.reset("sm_89"); }
};

TEST_F(SpatialPrecision, PlanSelectsDoubleForAreaIfItIsFast) {
  const GeneratedSet set = GeometryMaker(5, Ground::Uniform).set(1, 200);
  ASSERT_TRUE(spatial::area(*runtime_, read_columns(GeosOracle(set)).polygons).has_value());
  EXPECT_EQ(driver_.launches().back().kernel, "area_fp64");
}

TEST_F(SpatialOnSlowFp64, PlanSelectsSingleForAreaUnlessSettingRequiresDouble) {
  const GeneratedSet set = GeometryMaker(5, Ground::Uniform).set(1, 200);
  const GeosOracle oracle(set);
  const spatial::PolygonColumn polygons = read_columns(oracle).polygons;
  const auto area = [&](runtime::Precision precision) {
    (void)take_events();
    expect_close(spatial::area(*runtime_, polygons).value().host, oracle, polygons, precision, "area");
    const std::vector<Event> events = take_events();
    const auto dispatched = std::find_if(events.begin(), events.end(),
                                         [](const Event& event) { return event.is(runtime::events::kDispatched); });
    EXPECT_EQ(dispatched->detail("precision"), to_string(precision));
    EXPECT_EQ(dispatched->detail("planned_precision"), to_string(precision));
    EXPECT_EQ(dispatched->detail("precision_class"), "metric");
    EXPECT_EQ(dispatched->detail("fp64_ratio"), "64");
    return driver_.launches().back().kernel;
  };
  EXPECT_EQ(area(runtime::Precision::Fp32), "area_fp32");
  runtime_->set_precision(runtime::PrecisionPolicy::Fp64);
  EXPECT_EQ(area(runtime::Precision::Fp64), "area_fp64");
}

}  // namespace
}  // namespace kiln::test
