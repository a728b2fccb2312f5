// SPDX-License-Identifier: Apache-2.0
// Decisions and runs on the driver double, which executes no device code.
#include <gtest/gtest.h>

#include <kiln/stream.hpp>

#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/exact_variant.hpp"
#include "support/fixtures/runtime_fixture.hpp"
#include "support/fixtures/toolkit.hpp"
#include "support/processes/eventually.hpp"

namespace kiln::test {
namespace {

using runtime::Backend;
using runtime::Determinism;
using runtime::Dispatch;
using runtime::DispatchRequest;
using runtime::Mode;
using runtime::Precision;
using runtime::PrecisionClass;
using runtime::Reason;
using runtime::Robustness;
using runtime::Runtime;
using runtime::RuntimeOptions;

Unit clear_unit() {
  return Unit::cuda("clear.cu", "extern \"C\" __global__ void clear(int* x) { *x = 0; }").with_entry("clear");
}
Requirements clear_requirements{"clear", [] { return Units{clear_unit()}; }};

using Clear = Result<int>(Dispatch&);
using ClearWay = runtime::Implementation<Clear>;

Result<int> clear_on_cpu(Dispatch&) { return 0; }

Result<int> clear_on_cuda(Dispatch& dispatch) {
  Session& session = dispatch.runtime().session();
  if (const Status current = session.make_current(kiln::Backend::Cuda); !current) return current.error();
  const auto kernel = session.get(clear_unit(), "clear", std::chrono::seconds(60));
  if (!kernel) return kernel.error();
  const auto stream = session.stream(kiln::Backend::Cuda);
  if (!stream) return stream.error();
  const auto buffer = stream->allocate(sizeof(int));
  if (!buffer) return buffer.error();
  const LaunchConfig config(Grid(1), Block(1), *stream);
  if (const Status launched = kernel->launch(config, *buffer); !launched) return launched.error();
  if (const Status waited = stream->synchronize(); !waited) return waited.error();
  return 1;
}

constexpr auto kClear = runtime::operation<Clear>(
    "clear", PrecisionClass::Predicate, ClearWay{exact_variant(Backend::Cpu), &clear_on_cpu},
    ClearWay{exact_variant(Backend::Cuda, 100, &clear_requirements), &clear_on_cuda},
    ClearWay{{Backend::Cuda, Robustness::Exact, Precision::Mixed, Determinism::Deterministic, 100, &clear_requirements},
             &clear_on_cuda});

DispatchRequest many() {
  DispatchRequest request;
  request.rows = 100;
  return request;
}

class RuntimeCuda : public testing::Test {
 protected:
  Runtime make(RuntimeOptions options = {}) {
    options.devices = {Backend::Cuda};
    return Runtime(fixture_.session(FakeCudaDriver::path()), options);
  }

  FakeCudaDriver driver_{"sm_80"};
  RuntimeFixture fixture_;
};

TEST_F(RuntimeCuda, DriverIsNotOpenedForFewRows) {
  Runtime runtime = make();
  DispatchRequest few;
  few.rows = 99;
  EXPECT_EQ(runtime.decide(kClear, few).value().reason, Reason::BelowCrossover);
  EXPECT_EQ(driver_.calls("cuInit"), 0U);
  EXPECT_EQ(runtime.decide(kClear, many()).value().selected, Backend::Cuda);
  EXPECT_EQ(driver_.calls("cuInit"), 1U);
}

TEST_F(RuntimeCuda, DriverWithoutDevicesCountsAsNoDevice) {
  driver_.reset("");
  const runtime::Decision decision = make().decide(kClear, many()).value();
  EXPECT_EQ(decision.selected, Backend::Cpu);
  EXPECT_EQ(decision.reason, Reason::NoDevice);
  EXPECT_TRUE(has(fixture_.only(runtime::events::kFellBack).message, "cuda: "));
  RuntimeOptions gpu;
  gpu.mode = Mode::Gpu;
  EXPECT_EQ(make(gpu).decide(kClear, many()).error().code, Code::Unavailable);
}

TEST_F(RuntimeCuda, SettingModeClearsCachedDecisions) {
  RuntimeOptions options;
  options.devices = {Backend::Cuda};
  Runtime runtime(fixture_.session(), options);
  EXPECT_EQ(runtime.decide(kClear, many()).value().reason, Reason::NoDevice);
  runtime.session() = fixture_.session(FakeCudaDriver::path());
  EXPECT_EQ(runtime.decide(kClear, many()).value().reason, Reason::NoDevice) << "the decision is cached";
  EXPECT_EQ(driver_.calls("cuInit"), 0U);
  runtime.set_mode(std::nullopt);
  EXPECT_EQ(runtime.decide(kClear, many()).value().selected, Backend::Cuda);
}

TEST_F(RuntimeCuda, VariantMatchesPlannedPrecision) {
  EXPECT_EQ(make().decide(kClear, many()).value().precision, Precision::Fp64);
  driver_.reset("sm_89");
  const runtime::Decision decision = make().decide(kClear, many()).value();
  EXPECT_EQ(decision.precision, Precision::Mixed) << "double precision is slow on this device";
  EXPECT_EQ(decision.variant, kClear.begin() + 2);
}

TEST_F(RuntimeCuda, EventsCarryPlannedAndUsedPrecision) {
  driver_.reset("sm_89");
  Runtime runtime = make();
  ASSERT_TRUE(runtime.decide(kClear, many()).has_value());
  const Event decided = fixture_.only(runtime::events::kDecided);
  EXPECT_EQ(decided.detail("precision"), "mixed");
  EXPECT_EQ(decided.detail("planned_precision"), "mixed");
  EXPECT_EQ(decided.detail("precision_class"), "predicate");
  EXPECT_EQ(decided.detail("fp64_ratio"), "64");
  EXPECT_FALSE(decided.cpu_device);
  runtime.set_precision(runtime::PrecisionPolicy::Fp64);
  const runtime::Decision decision = runtime.decide(kClear, many()).value();
  EXPECT_EQ(decision.precision, Precision::Fp64);
  EXPECT_EQ(decision.variant, kClear.begin() + 1);
}

TEST_F(RuntimeCuda, RunClaimsDeviceOnLaunch) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  {
    Runtime runtime = make();
    const Result<int> ran = runtime::run(runtime, kClear, many());
    ASSERT_TRUE(ran.has_value()) << ran.error().message;
    EXPECT_EQ(*ran, 1);
    const Event reported = fixture_.only(runtime::events::kDispatched);
    EXPECT_EQ(reported.selected, "cuda");
    EXPECT_EQ(reported.target, fixture_.only(runtime::events::kDecided).target);
    EXPECT_EQ(fixture_.only(Event::Kind::Launched).context.dispatch, reported.context.dispatch);
    EXPECT_EQ(driver_.launches().size(), 1U);
    EXPECT_TRUE(eventually([&] { return runtime.decide(kClear, many()).value().warm; }));
  }
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(RuntimeCuda, FailedLaunchDoesNotClaimDevice) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  RuntimeOptions options;
  options.mode = Mode::Gpu;
  Runtime runtime = make(options);
  driver_.fail("cuLaunchKernelEx", 1, cuda::DriverResult::LaunchFailed);
  EXPECT_FALSE(runtime::run(runtime, kClear, many()).has_value());
  const Event reported = fixture_.only(runtime::events::kDispatched);
  EXPECT_EQ(reported.origin, "cuda");
  EXPECT_EQ(reported.selected, "cpu");
  EXPECT_EQ(runtime.counts().on_device, 0U);
}

TEST_F(RuntimeCuda, AutoFallsBackToCpuAfterFailedLaunch) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  Runtime runtime = make();
  driver_.fail("cuLaunchKernelEx", 1, cuda::DriverResult::LaunchFailed);
  const Result<int> ran = runtime::run(runtime, kClear, many());
  ASSERT_TRUE(ran.has_value()) << ran.error().message;
  EXPECT_EQ(*ran, 0);
  EXPECT_EQ(fixture_.only(runtime::events::kDispatched).selected, "cpu");
  EXPECT_TRUE(has(fixture_.only(runtime::events::kFellBack).message, "the variant for cuda failed"));
}

}  // namespace
}  // namespace kiln::test
