// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/geos_oracle.hpp"

namespace kiln::test {
namespace {

void expect_large_set_equal_to_geos(const GeneratedSet& set) {
  ASSERT_EQ(set.points.size(), 100'000U);
  ASSERT_EQ(set.polygons.size(), 1'000U);
  runtime::RuntimeOptions options;
  options.mode = runtime::Mode::Cpu;
  runtime::Runtime runtime(Session::open().value(), options);
  expect_equal_to_geos(runtime, set);
}

TEST(SpatialOnCpuLarge, StarsWithHolesEqualGeos) { expect_large_set_equal_to_geos(large_set_of_stars()); }
TEST(SpatialOnCpuLarge, TouchingShapesEqualGeos) { expect_large_set_equal_to_geos(large_set_that_touches()); }

}  // namespace
}  // namespace kiln::test
