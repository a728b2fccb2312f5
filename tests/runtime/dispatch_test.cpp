// SPDX-License-Identifier: Apache-2.0
// Runs on PoCL, which executes kernels.
#include <gtest/gtest.h>

#include "support/fixtures/doubling_operation.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;
using runtime::Backend;
using runtime::Decision;
using runtime::Dispatch;
using runtime::Mode;
using runtime::Reason;
using runtime::Runtime;
using runtime::RuntimeOptions;
using runtime::Stage;
using runtime::Transfer;

class DispatchTest : public testing::Test {
 protected:
  RuntimeFixture fixture_;
};

TEST_F(DispatchTest, RunsDecidedVariantAndReportsBackend) {
  Runtime runtime(fixture_.session());
  EXPECT_EQ(doubled(runtime, 1000).value(), Numbers(1000, 2.0F));
  const Event decided = fixture_.only(runtime::events::kDecided);
  const Event reported = fixture_.only(runtime::events::kDispatched);
  EXPECT_EQ(reported.requested, "auto");
  EXPECT_EQ(reported.origin, "opencl");
  EXPECT_EQ(reported.selected, "opencl");
  EXPECT_EQ(reported.target, decided.target);
  EXPECT_EQ(reported.context.operation, "doubling");
  EXPECT_EQ(reported.context.rows, 1000U);
  EXPECT_EQ(reported.context.workflow, decided.context.workflow);
  EXPECT_NE(reported.context.dispatch, 0U);
  EXPECT_NE(reported.context.dispatch, reported.context.workflow);
  EXPECT_GT(reported.ms, 0);
  EXPECT_EQ(runtime.counts().dispatches, 1U);
  EXPECT_EQ(runtime.counts().on_device, 1U);
}

TEST_F(DispatchTest, EventsDuringRunCarryItsName) {
  Runtime runtime(fixture_.session());
  ASSERT_TRUE(doubled(runtime, 1000).has_value());
  const std::uint64_t number = fixture_.only(runtime::events::kDispatched).context.dispatch;
  const Event launched = fixture_.only(Event::Kind::Launched);
  EXPECT_EQ(launched.context.operation, "doubling");
  EXPECT_EQ(launched.context.stage, "scale");
  EXPECT_EQ(launched.context.dispatch, number);
  std::vector<Purpose> purposes;
  for (const Event& copied : fixture_.events(Event::Kind::Copied)) {
    EXPECT_EQ(copied.context.dispatch, number);
    purposes.push_back(copied.context.purpose);
  }
  EXPECT_EQ(purposes, (std::vector<Purpose>{Purpose::Input, Purpose::Materialize}));
  const Event materialized = fixture_.only(runtime::events::kMaterialized);
  EXPECT_EQ(materialized.bytes, 1000 * sizeof(float));
  EXPECT_EQ(materialized.context.dispatch, number);
  EXPECT_EQ(OperationScope::current(), nullptr);
}

TEST_F(DispatchTest, CpuRunEmitsEvent) {
  Runtime runtime(fixture_.session());
  EXPECT_EQ(doubled(runtime, 5).value(), Numbers(5, 2.0F));
  const Event reported = fixture_.only(runtime::events::kDispatched);
  EXPECT_EQ(reported.origin, "cpu");
  EXPECT_EQ(reported.selected, "cpu");
  EXPECT_EQ(fixture_.only(runtime::events::kStageFinished).selected, "host");
  EXPECT_EQ(runtime.counts().on_device, 0U);
}

TEST_F(DispatchTest, DeviceIsClaimedOnlyAfterLaunch) {
  Runtime runtime(fixture_.session());
  runtime.set_mode(Mode::Gpu);
  {
    const auto dispatch = Dispatch::begin(runtime, kDoubling, {.rows = 1000});
    ASSERT_TRUE(dispatch.has_value()) << dispatch.error().message;
    EXPECT_EQ(dispatch->decision().selected, Backend::OpenCl);
  }
  const Event reported = fixture_.only(runtime::events::kDispatched);
  EXPECT_EQ(reported.origin, "opencl");
  EXPECT_EQ(reported.selected, "cpu");
  EXPECT_TRUE(has(reported.message, "no kernel was launched"));
  EXPECT_EQ(runtime.counts().on_device, 0U);
}

TEST_F(DispatchTest, ColdRunRequestsUnitsAndLaterRunIsWarm) {
  Runtime runtime(fixture_.session());
  const Decision cold = runtime.decide(kDoubling, {.rows = 1000}).value();
  EXPECT_FALSE(cold.warm) << "a decision does not wait";
  EXPECT_EQ(fixture_.events(runtime::events::kDecided).back().warm, false);
  EXPECT_TRUE(eventually([&] { return runtime.decide(kDoubling, {.rows = 1000}).value().warm; }, kHangTimeout));
  EXPECT_EQ(fixture_.events(runtime::events::kDecided).back().warm, true);
  EXPECT_TRUE(runtime.decide(kDoubling, {.rows = 5}).value().warm) << "the CPU variant compiles nothing";
}

TEST_F(DispatchTest, AutoFallsBackToCpuWithEventAfterFailure) {
  Runtime runtime(fixture_.session());
  Result<int> answer = runtime::run(runtime, kFailing, {.rows = 1000}, Code::Unavailable);
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(*answer, kOfCpu);
  const Event reported = fixture_.only(runtime::events::kFellBack);
  EXPECT_EQ(reported.requested, "auto");
  EXPECT_EQ(reported.selected, "cpu");
  EXPECT_TRUE(has(reported.message, "the variant for opencl failed: requested failure"));
  const Event dispatched = fixture_.only(runtime::events::kDispatched);
  EXPECT_EQ(reported.context.dispatch, dispatched.context.dispatch);
  EXPECT_EQ(dispatched.origin, "opencl");
  EXPECT_EQ(dispatched.selected, "cpu");
  EXPECT_EQ(runtime.counts().fallbacks, 1U);
}

TEST_F(DispatchTest, NoFallbackForExplicitGpuResidentRowsOrCallerErrors) {
  Runtime runtime(fixture_.session());
  EXPECT_FALSE(runtime::run(runtime, kFailing, {.rows = 1000}, Code::InvalidArgument).has_value());
  EXPECT_FALSE(runtime::run(runtime, kFailing, {1000, Residency::Device, Backend::OpenCl}, Code::Io).has_value());
  runtime.set_mode(Mode::Gpu);
  EXPECT_FALSE(runtime::run(runtime, kFailing, {.rows = 1000}, Code::Io).has_value());
  EXPECT_EQ(fixture_.log.count(runtime::events::kFellBack), 0U);
}

TEST_F(DispatchTest, NestedRunInheritsDecisionWithOwnId) {
  Runtime runtime(fixture_.session());
  runtime.set_mode(Mode::Gpu);
  std::uint64_t outer = 0;
  {
    const auto dispatch = Dispatch::begin(runtime, kFailing, {.rows = 1});
    ASSERT_TRUE(dispatch.has_value());
    outer = OperationScope::current()->dispatch;
    runtime.set_mode(Mode::Cpu);
    EXPECT_EQ(doubled(runtime, 3).value(), Numbers(3, 2.0F));
    EXPECT_EQ(OperationScope::current()->dispatch, outer);
  }
  const std::vector<Event> reported = fixture_.events(runtime::events::kDispatched);
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_EQ(reported[0].context.operation, "doubling");
  EXPECT_EQ(reported[0].selected, "opencl") << "inherited from the enclosing run";
  EXPECT_NE(reported[0].context.dispatch, outer);
  EXPECT_EQ(reported[0].context.workflow, reported[1].context.workflow);
  EXPECT_EQ(reported[1].selected, "opencl") << "launches of the nested run count for the enclosing run";
  EXPECT_EQ(fixture_.log.count(runtime::events::kDecided), 1U);
}

TEST_F(DispatchTest, StagesAreRecordedAndSynchronizeOnlyForTiming) {
  Session session = fixture_.session();
  {
    Runtime runtime(session);
    ASSERT_TRUE(doubled(runtime, 1000).has_value());
    EXPECT_EQ(fixture_.log.count(Event::Kind::Synchronized), 0U);
    const Event reported = fixture_.only(runtime::events::kStageFinished);
    EXPECT_EQ(reported.context.stage, "scale");
    EXPECT_EQ(reported.selected, "opencl");
    ASSERT_EQ(runtime.last_stages().size(), 1U);
    EXPECT_EQ(runtime.last_stages()[0].location, "opencl");
  }
  fixture_.time_stages.set("1");
  Runtime runtime(session);
  ASSERT_TRUE(doubled(runtime, 1000).has_value());
  const Event waited = fixture_.only(Event::Kind::Synchronized);
  EXPECT_EQ(waited.context.purpose, Purpose::Trace);
  EXPECT_EQ(waited.context.stage, "scale");
}

TEST_F(DispatchTest, HostStageIsMarked) {
  Runtime runtime(fixture_.session());
  runtime.set_mode(Mode::Gpu);
  {
    auto dispatch = Dispatch::begin(runtime, kDoubling, {.rows = 1000});
    ASSERT_TRUE(dispatch.has_value());
    Stage stage(*dispatch, "sizes");
    stage.on_host();
    OperationScope::count_launch();
  }
  EXPECT_EQ(fixture_.only(runtime::events::kStageFinished).selected, "host");
}

TEST_F(DispatchTest, OrdinaryCopyIsNotMaterialization) {
  Runtime runtime(fixture_.session());
  {
    const Transfer transfer(runtime, Purpose::AllocationSize);
    EXPECT_EQ(OperationScope::current()->purpose, Purpose::AllocationSize);
  }
  EXPECT_EQ(fixture_.log.count(runtime::events::kMaterialized), 0U);
}

}  // namespace
}  // namespace kiln::test
