#include <gtest/gtest.h>

#include <kiln/runtime.hpp>

namespace kiln::test {
namespace {

using runtime::planned_precision;
using runtime::Precision;
using runtime::PrecisionClass;

constexpr PrecisionClass kClasses[] = {PrecisionClass::Predicate, PrecisionClass::Metric, PrecisionClass::Coarse};

TEST(PlannedPrecision, IsDoubleOnFastOrUnknownDevices) {
  for (const PrecisionClass wanted : kClasses) {
    for (const unsigned ratio : {0U, 1U, 2U, 4U}) {
      EXPECT_EQ(planned_precision(wanted, ratio), Precision::Fp64) << to_string(wanted) << ' ' << ratio;
    }
  }
}

TEST(PlannedPrecision, FollowsClassIfDoubleIsSlow) {
  for (const unsigned ratio : {5U, 32U, 64U}) {
    EXPECT_EQ(planned_precision(PrecisionClass::Predicate, ratio), Precision::Mixed);
    EXPECT_EQ(planned_precision(PrecisionClass::Coarse, ratio), Precision::Fp32);
    EXPECT_EQ(planned_precision(PrecisionClass::Metric, ratio), Precision::Fp64)
        << "metric results keep double precision";
  }
}

}  // namespace
}  // namespace kiln::test
