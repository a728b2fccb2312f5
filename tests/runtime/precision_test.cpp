#include <gtest/gtest.h>

#include "support/fixtures/runtime_fixture.hpp"

namespace kiln::test {
namespace {

using runtime::planned_precision;
using runtime::Precision;
using runtime::PrecisionClass;
using runtime::PrecisionPolicy;
using runtime::Runtime;
using runtime::RuntimeOptions;
using runtime::SettingSource;

constexpr PrecisionClass kClasses[] = {PrecisionClass::Predicate, PrecisionClass::Metric, PrecisionClass::Coarse,
                                       PrecisionClass::Constructive};

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
    EXPECT_EQ(planned_precision(PrecisionClass::Metric, ratio), Precision::Fp32);
    EXPECT_EQ(planned_precision(PrecisionClass::Constructive, ratio), Precision::Fp64)
        << "new coordinates keep double precision";
  }
}

TEST(PlannedPrecision, PolicyCanRequireDouble) {
  for (const PrecisionClass wanted : kClasses) {
    EXPECT_EQ(planned_precision(wanted, 32, PrecisionPolicy::Fp64), Precision::Fp64) << to_string(wanted);
  }
}

TEST(PrecisionSetting, OverridePrecedesEnvironmentPrecedesDefault) {
  RuntimeFixture fixture;
  Runtime runtime(fixture.session());
  EXPECT_EQ(runtime.precision(), PrecisionPolicy::Auto);
  EXPECT_EQ(runtime.precision_source(), SettingSource::Default);
  fixture.precision.set("fp64");
  runtime.set_precision({});
  EXPECT_EQ(runtime.precision(), PrecisionPolicy::Fp64);
  EXPECT_EQ(runtime.precision_source(), SettingSource::Environment);
  RuntimeOptions options;
  options.precision = PrecisionPolicy::Auto;
  EXPECT_EQ(Runtime(fixture.session(), options).precision(), PrecisionPolicy::Auto);
  EXPECT_EQ(Runtime(fixture.session(), options).precision_source(), SettingSource::Override);
}

TEST(PrecisionSetting, InvalidValueIsReportedAndIgnored) {
  RuntimeFixture fixture;
  fixture.precision.set("fp32");
  EXPECT_EQ(Runtime(fixture.session()).precision(), PrecisionPolicy::Auto);
  EXPECT_TRUE(has(fixture.only(Event::Kind::ConfigWarning).message,
                  "KILN_PRECISION is ignored: invalid value 'fp32'; use auto or fp64"));
}

}  // namespace
}  // namespace kiln::test
