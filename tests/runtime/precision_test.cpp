// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/runtime_fixture.hpp"

namespace kiln::test {
namespace {

using runtime::Backend;
using runtime::Decision;
using runtime::Determinism;
using runtime::Dispatch;
using runtime::DispatchRequest;
using runtime::Mode;
using runtime::planned_precision;
using runtime::Precision;
using runtime::PrecisionClass;
using runtime::PrecisionPolicy;
using runtime::Reason;
using runtime::Robustness;
using runtime::Runtime;
using runtime::RuntimeOptions;
using runtime::SettingSource;
using runtime::Workflow;

constexpr PrecisionClass kClasses[] = {PrecisionClass::Predicate, PrecisionClass::Metric, PrecisionClass::Coarse,
                                       PrecisionClass::Constructive};

using Task = Result<int>(Dispatch&);
Result<int> return_zero(Dispatch&) { return 0; }
constexpr runtime::Implementation<Task> in(Precision precision, Backend backend) {
  return {{backend, Robustness::Bounded, precision, Determinism::Deterministic, 0, nullptr}, &return_zero};
}
constexpr auto kBuild = runtime::operation<Task>(
    "build", PrecisionClass::Constructive, in(Precision::Fp64, Backend::Cpu), in(Precision::Fp32, Backend::OpenCl));
constexpr auto kMeasure = runtime::operation<Task>("measure", PrecisionClass::Metric, in(Precision::Fp64, Backend::Cpu),
                                                   in(Precision::Fp32, Backend::OpenCl));
constexpr auto kRough = runtime::operation<Task>("rough", PrecisionClass::Coarse, in(Precision::Mixed, Backend::Cpu));
constexpr DispatchRequest kOnHost{1000, Residency::Host, Backend::Cpu};
constexpr DispatchRequest kOnDevice{1000, Residency::Device, Backend::OpenCl};
constexpr const char* kByClass = "no variant in fp64 (as a constructive operation requires)";
constexpr const char* kByPolicy = "no variant in fp64 (as requested)";

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

void expect_only_fp64(Runtime& runtime, const runtime::Operation& operation, const char* reason) {
  const Decision decision = runtime.decide(operation, kOnHost).value();
  EXPECT_EQ(decision.selected, Backend::Cpu);
  EXPECT_EQ(decision.precision, Precision::Fp64);
  EXPECT_EQ(decision.reason, Reason::NoVariant);
  EXPECT_TRUE(has(decision.explanation, reason));
  const auto resident = runtime.decide(operation, kOnDevice);
  ASSERT_FALSE(resident.has_value());
  EXPECT_EQ(resident.error().code, Code::Unsupported);
  EXPECT_TRUE(has(resident.error().message, reason));
  runtime.set_mode(Mode::Gpu);
  const auto refused = runtime.decide(operation, kOnHost);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::Unsupported);
  EXPECT_TRUE(has(refused.error().message, std::string("opencl: ") + reason));
  runtime.set_mode({});
}

TEST(RequiredFp64, ConstructiveOperationUsesNoOtherVariant) {
  RuntimeFixture fixture;
  Runtime runtime(fixture.session());
  expect_only_fp64(runtime, kBuild, kByClass);
}

TEST(RequiredFp64, PolicyExcludesOtherVariants) {
  RuntimeFixture fixture;
  Runtime runtime(fixture.session());
  EXPECT_EQ(runtime.decide(kMeasure, kOnHost).value().precision, Precision::Fp32) << "auto allows it";
  EXPECT_TRUE(runtime.decide(kRough, kOnHost).has_value());
  runtime.set_precision(PrecisionPolicy::Fp64);
  expect_only_fp64(runtime, kMeasure, kByPolicy);
  const auto none = runtime.decide(kRough, kOnHost);
  ASSERT_FALSE(none.has_value());
  EXPECT_TRUE(has(none.error().message, "there is no variant in fp64 (as requested) for the CPU"));
}

TEST(RequiredFp64, AppliesToWorkflowsAndInsideThem) {
  RuntimeFixture fixture;
  Runtime runtime(fixture.session());
  {
    const auto both = Workflow::begin(runtime, "both", {&kMeasure, &kBuild}, kOnHost);
    ASSERT_TRUE(both.has_value()) << both.error().message;
    EXPECT_EQ(both->decision().selected, Backend::Cpu);
    EXPECT_TRUE(has(both->decision().explanation, kByClass));
  }
  {
    const auto workflow = Workflow::begin(runtime, "one", {&kMeasure}, kOnHost);
    ASSERT_TRUE(workflow.has_value()) << workflow.error().message;
    ASSERT_EQ(workflow->decision().selected, Backend::OpenCl);
    const Decision inside = runtime.decide(kBuild, kOnHost).value();
    EXPECT_EQ(inside.selected, Backend::Cpu);
    EXPECT_EQ(inside.precision, Precision::Fp64);
    EXPECT_TRUE(has(fixture.only(runtime::events::kFellBack).message, kByClass));
    EXPECT_TRUE(has(runtime.decide(kBuild, kOnDevice).error().message, kByClass));
  }
  runtime.set_mode(Mode::Gpu);
  const auto workflow = Workflow::begin(runtime, "one", {&kMeasure}, kOnHost);
  ASSERT_TRUE(workflow.has_value()) << workflow.error().message;
  EXPECT_TRUE(has(runtime.decide(kBuild, kOnHost).error().message, kByClass));
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
