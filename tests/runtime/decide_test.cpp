// SPDX-License-Identifier: Apache-2.0
// Decisions with PoCL, which executes kernels, as the only device, and without a device.
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
using runtime::PrecisionClass;
using runtime::Reason;
using runtime::Robustness;
using runtime::Runtime;
using runtime::RuntimeOptions;
using runtime::SettingSource;

using Decided = Result<int>(Dispatch&);
using Way = runtime::Implementation<Decided>;
Result<int> no_result(Dispatch&) { return 0; }

constexpr runtime::Variant on(Backend backend, std::uint64_t crossover = 0,
                              Determinism determinism = Determinism::Deterministic,
                              runtime::Precision precision = runtime::Precision::Fp64) {
  return {backend, Robustness::Exact, precision, determinism, crossover, nullptr};
}
constexpr Way way(const runtime::Variant& variant) { return {variant, &no_result}; }

constexpr auto kCpuAlone = runtime::operation<Decided>("cpu alone", PrecisionClass::Predicate, way(on(Backend::Cpu)));
constexpr auto kScan = runtime::operation<Decided>("scan", PrecisionClass::Predicate, way(on(Backend::Cpu)),
                                                   way(on(Backend::OpenCl, 100)), way(on(Backend::Cuda, 50)));
constexpr auto kSort = runtime::operation<Decided>("sort", PrecisionClass::Predicate, way(on(Backend::Cpu)),
                                                   way(on(Backend::OpenCl, 3000)));
constexpr auto kCudaToo = runtime::operation<Decided>("cuda too", PrecisionClass::Predicate, way(on(Backend::Cpu)),
                                                      way(on(Backend::Cuda, 100)));
constexpr auto kDeviceAlone =
    runtime::operation<Decided>("device alone", PrecisionClass::Predicate, way(on(Backend::OpenCl, 100)));
constexpr auto kUnordered = runtime::operation<Decided>("unordered", PrecisionClass::Predicate, way(on(Backend::Cpu)),
                                                        way(on(Backend::OpenCl, 0, Determinism::Unordered)));
constexpr auto kUnorderedAlone = runtime::operation<Decided>("unordered alone", PrecisionClass::Predicate,
                                                             way(on(Backend::OpenCl, 0, Determinism::Unordered)));
constexpr auto kPrecise = runtime::operation<Decided>(
    "precise", PrecisionClass::Predicate,
    way(on(Backend::OpenCl, 0, Determinism::Deterministic, runtime::Precision::Mixed)), way(on(Backend::OpenCl, 0)));

constexpr DispatchRequest kOnOpenCl{5, Residency::Device, Backend::OpenCl};

DispatchRequest rows(std::uint64_t count) {
  DispatchRequest request;
  request.rows = count;
  return request;
}

class DecideTest : public testing::Test {
 protected:
  Runtime make(std::vector<Backend> devices, std::optional<Mode> mode = {}, bool deterministic = false) {
    RuntimeOptions options;
    options.devices = std::move(devices);
    options.mode = mode;
    options.deterministic = deterministic;
    return Runtime(fixture_.session(), options);
  }
  Runtime make(std::optional<Mode> mode = {}) { return make({Backend::Cuda, Backend::OpenCl}, mode); }

  RuntimeFixture fixture_;
};

TEST_F(DecideTest, ExplicitCpuIgnoresRowCount) {
  fixture_.mode.set("cpu");
  const Decision decision = make().decide(kScan, rows(1'000'000)).value();
  EXPECT_EQ(decision.selected, Backend::Cpu);
  EXPECT_EQ(decision.reason, Reason::Requested);
  EXPECT_EQ(decision.source, SettingSource::Environment);
  EXPECT_FALSE(decision.fallback);
  const Event reported = fixture_.only(runtime::events::kDecided);
  EXPECT_EQ(reported.requested, "cpu");
  EXPECT_EQ(reported.selected, "cpu");
  EXPECT_EQ(reported.origin, "environment");
  EXPECT_TRUE(has(reported.message, "KILN_EXECUTION_MODE"));
  EXPECT_EQ(reported.context.operation, "scan");
  EXPECT_EQ(reported.context.rows, 1'000'000U);
  EXPECT_EQ(reported.context.workflow, decision.id);
  EXPECT_EQ(reported.context.residency, Residency::Host);
}

TEST_F(DecideTest, ExplicitGpuIgnoresRowCount) {
  const Decision decision = make(Mode::Gpu).decide(kScan, rows(1)).value();
  EXPECT_EQ(decision.selected, Backend::OpenCl) << "the first available device";
  EXPECT_EQ(decision.reason, Reason::Requested);
  EXPECT_EQ(decision.source, SettingSource::Override);
  EXPECT_FALSE(decision.device.empty());
  const Event reported = fixture_.only(runtime::events::kDecided);
  EXPECT_EQ(reported.requested, "gpu");
  EXPECT_EQ(reported.selected, "opencl");
  EXPECT_EQ(reported.target, decision.device);
  EXPECT_EQ(fixture_.log.count(runtime::events::kFellBack), 0U);
}

TEST_F(DecideTest, ExplicitGpuFailsWithoutDevice) {
  fixture_.mode.set("gpu");
  const auto decision = make({Backend::Cuda}).decide(kCudaToo, rows(1));
  ASSERT_FALSE(decision.has_value());
  EXPECT_EQ(decision.error().code, Code::Unavailable);
  const std::string& message = decision.error().message;
  EXPECT_TRUE(has(message, "gpu was requested by KILN_EXECUTION_MODE, but cuda too cannot run on a device: cuda: "));
  EXPECT_TRUE(has(message, "no-driver.so"));
  EXPECT_TRUE(has(message, "set the mode to auto or cpu"));
  EXPECT_EQ(fixture_.log.count(runtime::events::kDecided), 0U);
}

TEST_F(DecideTest, ExplicitGpuFailsWithoutDeviceVariant) {
  const auto decision = make(Mode::Gpu).decide(kCpuAlone, rows(1));
  ASSERT_FALSE(decision.has_value());
  EXPECT_EQ(decision.error().code, Code::Unsupported);
  EXPECT_TRUE(has(decision.error().message, "opencl: no variant"));
}

TEST_F(DecideTest, AutoUsesDeviceAtCrossover) {
  Runtime runtime = make({Backend::OpenCl});
  const Decision below = runtime.decide(kScan, rows(99)).value();
  EXPECT_EQ(below.selected, Backend::Cpu);
  EXPECT_EQ(below.reason, Reason::BelowCrossover);
  EXPECT_EQ(below.crossover, 100U);
  EXPECT_FALSE(below.fallback) << "the CPU is the right choice here";
  EXPECT_TRUE(has(below.explanation, "99 rows: below the crossover of 100"));
  const Decision from = runtime.decide(kScan, rows(100)).value();
  EXPECT_EQ(from.selected, Backend::OpenCl);
  EXPECT_EQ(from.reason, Reason::AboveCrossover);
  EXPECT_EQ(runtime.decide(kSort, rows(100)).value().selected, Backend::Cpu) << "each operation has its own crossover";
  EXPECT_EQ(runtime.decide(kSort, rows(3000)).value().selected, Backend::OpenCl);
  EXPECT_EQ(fixture_.log.count(runtime::events::kDecided), 4U);
  EXPECT_EQ(fixture_.log.count(runtime::events::kFellBack), 0U);
  EXPECT_EQ(runtime.counts().decisions, 4U);
}

TEST_F(DecideTest, AutoFallsBackWithEventWithoutDevice) {
  Runtime runtime = make({Backend::Cuda});
  const Decision decision = runtime.decide(kCudaToo, rows(100)).value();
  EXPECT_EQ(decision.selected, Backend::Cpu);
  EXPECT_EQ(decision.reason, Reason::NoDevice);
  EXPECT_TRUE(decision.fallback);
  const Event reported = fixture_.only(runtime::events::kFellBack);
  EXPECT_EQ(reported.requested, "auto");
  EXPECT_EQ(reported.selected, "cpu");
  EXPECT_TRUE(has(reported.message, "cuda: "));
  EXPECT_TRUE(has(reported.message, "no-driver.so"));
  EXPECT_EQ(reported.context.workflow, decision.id);
  EXPECT_EQ(runtime.counts().fallbacks, 1U);
}

TEST_F(DecideTest, EveryFallbackEmitsEventForCachedDecision) {
  Runtime runtime = make({Backend::Cuda});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(runtime.decide(kCudaToo, rows(100)).value().fallback);
  EXPECT_EQ(fixture_.log.count(runtime::events::kFellBack), 3U);
}

TEST_F(DecideTest, AutoBelowCrossoverIsNotAFallback) {
  EXPECT_FALSE(make({Backend::Cuda}).decide(kCudaToo, rows(99)).value().fallback);
  EXPECT_EQ(fixture_.log.count(runtime::events::kFellBack), 0U);
}

TEST_F(DecideTest, AutoUsesNextDeviceIfPreferredIsMissing) {
  const Decision decision = make().decide(kScan, rows(100)).value();
  EXPECT_EQ(decision.selected, Backend::OpenCl);
  EXPECT_FALSE(decision.fallback);
}

TEST_F(DecideTest, ResidentRowsIgnoreRowCount) {
  for (const Mode mode : {Mode::Auto, Mode::Gpu}) {
    const Decision decision = make(mode).decide(kScan, kOnOpenCl).value();
    EXPECT_EQ(decision.selected, Backend::OpenCl);
    EXPECT_EQ(decision.reason, Reason::Resident);
    EXPECT_EQ(decision.residency, Residency::Device);
  }
  EXPECT_EQ(fixture_.events(runtime::events::kDecided).front().context.residency, Residency::Device);
}

TEST_F(DecideTest, ExplicitCpuFailsForResidentRows) {
  const auto decision = make(Mode::Cpu).decide(kScan, kOnOpenCl);
  ASSERT_FALSE(decision.has_value());
  EXPECT_EQ(decision.error().code, Code::Unsupported);
  EXPECT_TRUE(has(decision.error().message, "materialize them first"));
}

TEST_F(DecideTest, ResidentRowsFailWithoutVariant) {
  const auto decision = make().decide(kCpuAlone, kOnOpenCl);
  ASSERT_FALSE(decision.has_value());
  EXPECT_EQ(decision.error().code, Code::Unsupported);
  EXPECT_TRUE(has(decision.error().message, "cpu alone has no variant for opencl, where its rows are"));
}

TEST_F(DecideTest, ResidentRowsWithoutDeviceAreInvalid) {
  const auto decision = make().decide(kScan, {1, Residency::Device, Backend::Cpu});
  ASSERT_FALSE(decision.has_value());
  EXPECT_EQ(decision.error().code, Code::InvalidArgument);
}

TEST_F(DecideTest, OnlyVariantIgnoresRowCount) {
  Runtime runtime = make();
  EXPECT_EQ(runtime.decide(kCpuAlone, rows(1'000'000)).value().reason, Reason::OnlyVariant);
  const Decision device = runtime.decide(kDeviceAlone, rows(1)).value();
  EXPECT_EQ(device.selected, Backend::OpenCl);
  EXPECT_EQ(device.reason, Reason::OnlyVariant);
  const auto neither = make(Mode::Cpu).decide(kDeviceAlone, rows(1));
  ASSERT_FALSE(neither.has_value());
  EXPECT_TRUE(has(neither.error().message, "device alone has no variant for the CPU"));
  const auto missing = make({Backend::Cuda}).decide(kDeviceAlone, rows(1));
  ASSERT_FALSE(missing.has_value());
}

TEST_F(DecideTest, DeterministicModeExcludesOtherVariants) {
  EXPECT_EQ(make({Backend::OpenCl}).decide(kUnordered, rows(1)).value().selected, Backend::OpenCl);
  const Decision decision = make({Backend::OpenCl}, {}, true).decide(kUnordered, rows(1)).value();
  EXPECT_EQ(decision.selected, Backend::Cpu);
  EXPECT_EQ(decision.reason, Reason::NoVariant);
  EXPECT_TRUE(has(decision.explanation, "that is deterministic (as requested)"));
  for (const std::optional<Mode> mode : {std::optional<Mode>(), std::optional(Mode::Gpu), std::optional(Mode::Cpu)}) {
    const auto none = make({Backend::OpenCl}, mode, true).decide(kUnorderedAlone, rows(1));
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, Code::Unsupported);
    EXPECT_TRUE(has(none.error().message, "deterministic"));
  }
}

TEST_F(DecideTest, SelectsVariantOfPlannedPrecision) {
  const Decision decision = make().decide(kPrecise, rows(1)).value();
  EXPECT_EQ(decision.precision, runtime::Precision::Fp64)
      << "the PoCL device is a CPU, which is fast at double precision";
  EXPECT_EQ(decision.variant, kPrecise.begin() + 1);
}

TEST_F(DecideTest, CpuIsNotADevice) {
  const auto refused = make({Backend::Cpu}, Mode::Gpu).decide(kScan, rows(1000));
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(has(refused.error().message, "RuntimeOptions::devices allows none"));
  EXPECT_TRUE(has(fixture_.only(Event::Kind::ConfigWarning).message, "devices: cpu is ignored: it is not a device"));
  const Decision decision = make({Backend::Cpu}).decide(kScan, rows(1000)).value();
  EXPECT_EQ(decision.selected, Backend::Cpu);
  EXPECT_EQ(decision.reason, Reason::NoVariant);
  Runtime both = make({Backend::Cpu, Backend::OpenCl}, Mode::Gpu);
  EXPECT_EQ(both.decide(kScan, rows(1)).value().selected, Backend::OpenCl);
  EXPECT_EQ(both.options().devices, std::vector<Backend>{Backend::OpenCl});
}

TEST_F(DecideTest, DecisionIdsAreUnique) {
  Runtime runtime = make(Mode::Cpu);
  EXPECT_NE(runtime.decide(kScan, rows(1)).value().id, runtime.decide(kScan, rows(1)).value().id);
}

TEST_F(DecideTest, CachedDecisionFollowsMode) {
  Runtime runtime = make({Backend::OpenCl});
  EXPECT_EQ(runtime.decide(kScan, rows(100)).value().selected, Backend::OpenCl);
  runtime.set_mode(Mode::Cpu);
  EXPECT_EQ(runtime.decide(kScan, rows(100)).value().selected, Backend::Cpu);
  fixture_.mode.set("gpu");
  runtime.set_mode(std::nullopt);
  EXPECT_EQ(runtime.decide(kScan, rows(1)).value().selected, Backend::OpenCl);
  fixture_.mode.set("cpu");
  runtime.set_rewrites(std::nullopt);
  EXPECT_EQ(runtime.mode(), Mode::Cpu) << "the environment was read again";
  EXPECT_EQ(runtime.decide(kScan, rows(1)).value().selected, Backend::Cpu);
}

}  // namespace
}  // namespace kiln::test
