// SPDX-License-Identifier: Apache-2.0
// Workflows on PoCL, which executes kernels.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "support/fixtures/doubling_operation.hpp"

namespace kiln::test {
namespace {

using runtime::Backend;
using runtime::Dispatch;
using runtime::DispatchRequest;
using runtime::Mode;
using runtime::Reason;
using runtime::Runtime;
using runtime::Workflow;

using Step = Result<int>(Dispatch&);
Result<int> step(Dispatch&) { return 0; }
constexpr runtime::Implementation<Step> step_on(Backend backend, std::uint64_t crossover = 0) {
  return {exact_variant(backend, crossover), &step};
}
constexpr auto kHostStep =
    runtime::operation<Step>("host step", runtime::PrecisionClass::Metric, step_on(Backend::Cpu));
constexpr auto kDeviceStep =
    runtime::operation<Step>("device step", runtime::PrecisionClass::Metric, step_on(Backend::OpenCl));
constexpr auto kLateStep = runtime::operation<Step>("late step", runtime::PrecisionClass::Metric, step_on(Backend::Cpu),
                                                    step_on(Backend::OpenCl, 5000));

constexpr auto kUnorderedStep = runtime::operation<Step>(
    "unordered step", runtime::PrecisionClass::Metric,
    runtime::Implementation<Step>{{Backend::Cpu, runtime::Robustness::Exact, runtime::Precision::Fp64,
                                   runtime::Determinism::Unordered, 0, nullptr},
                                  &step});

DispatchRequest of(std::uint64_t rows) {
  DispatchRequest request;
  request.rows = rows;
  return request;
}

class WorkflowTest : public testing::Test {
 protected:
  RuntimeFixture fixture_;
};

TEST_F(WorkflowTest, DecidesOnceForAllRuns) {
  Runtime runtime(fixture_.session());
  std::uint64_t number = 0;
  {
    const auto workflow = Workflow::begin(runtime, "twice", {&kDoubling}, of(1000));
    ASSERT_TRUE(workflow.has_value()) << workflow.error().message;
    number = workflow->decision().id;
    runtime.set_mode(Mode::Cpu);
    EXPECT_TRUE(doubled(runtime, 1000).has_value());
    EXPECT_TRUE(doubled(runtime, 3).has_value()) << "alone it would be below the crossover";
  }
  const Event decided = fixture_.only(runtime::events::kDecided);
  EXPECT_EQ(decided.context.operation, "twice");
  EXPECT_EQ(decided.context.workflow, number);
  const std::vector<Event> ran = fixture_.events(runtime::events::kDispatched);
  ASSERT_EQ(ran.size(), 2U);
  for (const Event& one : ran) {
    EXPECT_EQ(one.selected, "opencl");
    EXPECT_EQ(one.context.workflow, number);
  }
  EXPECT_NE(ran[0].context.dispatch, ran[1].context.dispatch);
  EXPECT_EQ(runtime.counts().decisions, 1U);
  EXPECT_EQ(OperationScope::current(), nullptr);
}

TEST_F(WorkflowTest, DecidesAgainOnlyAtChunkBoundaries) {
  Runtime runtime(fixture_.session());
  auto workflow = Workflow::begin(runtime, "chunks", {&kDoubling}, of(1000));
  ASSERT_TRUE(workflow.has_value());
  const std::uint64_t first = workflow->decision().id;
  {
    const auto dispatch = Dispatch::begin(runtime, kDoubling, of(3));
    ASSERT_TRUE(dispatch.has_value());
    const Status inside = workflow->next_chunk(of(3));
    ASSERT_FALSE(inside.has_value());
    EXPECT_EQ(inside.error().code, Code::InvalidArgument);
  }
  ASSERT_TRUE(workflow->next_chunk(of(3)).has_value());
  EXPECT_EQ(workflow->decision().selected, Backend::Cpu);
  EXPECT_NE(workflow->decision().id, first);
  EXPECT_EQ(OperationScope::current()->workflow, workflow->decision().id);
  EXPECT_TRUE(doubled(runtime, 1000).has_value());
  EXPECT_EQ(fixture_.events(runtime::events::kDispatched).back().selected, "cpu");
  EXPECT_EQ(fixture_.log.count(runtime::events::kDecided), 2U);
}

TEST_F(WorkflowTest, SelectsBackendSupportedByEveryOperation) {
  Runtime runtime(fixture_.session());
  const auto workflow = Workflow::begin(runtime, "mixed", {&kDoubling, &kHostStep}, of(1000));
  ASSERT_TRUE(workflow.has_value());
  EXPECT_EQ(workflow->decision().selected, Backend::Cpu);
  runtime.set_mode(Mode::Gpu);
  std::thread([&] {
    const auto none = Workflow::begin(runtime, "mixed", {&kDoubling, &kHostStep}, of(1000));
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, Code::Unsupported);
  }).join();
}

TEST_F(WorkflowTest, UsesLargestCrossover) {
  Runtime runtime(fixture_.session());
  {
    const auto workflow = Workflow::begin(runtime, "both", {&kDoubling, &kLateStep}, of(1000));
    EXPECT_EQ(workflow->decision().reason, Reason::BelowCrossover);
    EXPECT_EQ(workflow->decision().crossover, 5000U);
  }
  const auto workflow = Workflow::begin(runtime, "both", {&kDoubling, &kLateStep}, of(5000));
  EXPECT_EQ(workflow->decision().selected, Backend::OpenCl);
}

TEST_F(WorkflowTest, OutermostWorkflowDecides) {
  Runtime runtime(fixture_.session());
  const auto outer = Workflow::begin(runtime, "outer", {&kDoubling}, of(1000));
  ASSERT_TRUE(outer.has_value());
  {
    auto inner = Workflow::begin(runtime, "inner", {&kDoubling}, of(1));
    ASSERT_TRUE(inner.has_value());
    EXPECT_EQ(inner->decision().selected, Backend::OpenCl);
    EXPECT_EQ(inner->decision().id, outer->decision().id);
    EXPECT_TRUE(inner->next_chunk(of(1)).has_value());
    EXPECT_EQ(inner->decision().id, outer->decision().id);
  }
  EXPECT_EQ(fixture_.log.count(runtime::events::kDecided), 1U);
}

TEST_F(WorkflowTest, CanOutliveTheRunThatItBeganIn) {
  Runtime runtime(fixture_.session());
  auto run = std::make_unique<Result<Dispatch>>(Dispatch::begin(runtime, kDoubling, of(1000)));
  ASSERT_TRUE(run->has_value());
  auto workflow = Workflow::begin(runtime, "generator", {&kDoubling}, of(1000));
  ASSERT_TRUE(workflow.has_value());
  run.reset();
  const std::uint64_t first = workflow->decision().id;
  ASSERT_TRUE(workflow->next_chunk(of(1000)).has_value());
  EXPECT_NE(workflow->decision().id, first) << "it is no longer inside another scope, so it decides itself";
  EXPECT_TRUE(doubled(runtime, 1000).has_value());
  EXPECT_EQ(fixture_.events(runtime::events::kDispatched).back().context.workflow, workflow->decision().id);
}

TEST_F(WorkflowTest, NestedWorkflowUsesOneBackend) {
  Runtime runtime(fixture_.session());
  const auto outer = Workflow::begin(runtime, "outer", {&kDoubling}, of(1000));
  ASSERT_TRUE(outer.has_value());
  const auto inner = Workflow::begin(runtime, "inner", {&kDoubling, &kHostStep}, of(1000));
  ASSERT_TRUE(inner.has_value());
  EXPECT_EQ(inner->decision().selected, Backend::Cpu);
  EXPECT_EQ(inner->decision().id, outer->decision().id);
  EXPECT_TRUE(has(fixture_.only(runtime::events::kFellBack).message, "host step has no variant for opencl"));
  EXPECT_EQ(runtime.decide(kDoubling, of(1000)).value().selected, Backend::Cpu);
}

TEST_F(WorkflowTest, OperationWithoutVariantFallsBackOrFails) {
  Runtime runtime(fixture_.session());
  {
    const auto workflow = Workflow::begin(runtime, "forgetful", {&kDoubling}, of(1000));
    ASSERT_TRUE(workflow.has_value());
    const auto decision = runtime.decide(kHostStep, of(1000));
    ASSERT_TRUE(decision.has_value());
    EXPECT_TRUE(decision->fallback);
    EXPECT_EQ(decision->selected, Backend::Cpu);
    const Event reported = fixture_.only(runtime::events::kFellBack);
    EXPECT_TRUE(has(reported.message, "host step has no variant for opencl, which forgetful uses"));
    EXPECT_EQ(reported.context.workflow, workflow->decision().id);
    EXPECT_FALSE(runtime.decide(kHostStep, {1000, Residency::Device, Backend::OpenCl}).has_value());
  }
  runtime.set_mode(Mode::Cpu);
  const auto workflow = Workflow::begin(runtime, "forgetful", {&kDoubling}, of(1000));
  ASSERT_TRUE(workflow.has_value());
  const auto decision = runtime.decide(kDeviceStep, of(1000));
  ASSERT_FALSE(decision.has_value());
  EXPECT_EQ(decision.error().code, Code::Unsupported);
}

TEST_F(WorkflowTest, ResidentRowsFailInCpuWorkflow) {
  Runtime runtime(fixture_.session());
  const auto workflow = Workflow::begin(runtime, "small", {&kDoubling}, of(1));
  ASSERT_EQ(workflow->decision().selected, Backend::Cpu);
  const auto decision = runtime.decide(kDoubling, {1000, Residency::Device, Backend::OpenCl});
  ASSERT_FALSE(decision.has_value());
  EXPECT_TRUE(has(decision.error().message, "materialize them first"));
}

TEST_F(WorkflowTest, AppliesToItsThreadAndRuntimeOnly) {
  Session session = fixture_.session();
  Runtime runtime(session);
  Runtime other(session);
  const auto workflow = Workflow::begin(runtime, "mine", {&kDoubling}, of(1000));
  ASSERT_TRUE(workflow.has_value());
  EXPECT_EQ(other.decide(kDoubling, of(1)).value().selected, Backend::Cpu);
  std::thread([&] { EXPECT_EQ(runtime.decide(kDoubling, of(1)).value().selected, Backend::Cpu); }).join();
}

TEST_F(WorkflowTest, ConcurrentDecisionsWhileModeChanges) {
  Runtime runtime(fixture_.session());
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        const auto workflow = Workflow::begin(runtime, "busy", {&kLateStep}, of(4900 + i));
        ASSERT_TRUE(workflow.has_value()) << workflow.error().message;
        const auto dispatch = Dispatch::begin(runtime, kLateStep, of(i));
        ASSERT_TRUE(dispatch.has_value());
        EXPECT_EQ(dispatch->decision().selected, workflow->decision().selected);
        EXPECT_EQ(dispatch->decision().id, workflow->decision().id);
      }
    });
  }
  for (int i = 0; i < 50; ++i) runtime.set_mode(i % 2 == 0 ? std::optional(Mode::Cpu) : std::nullopt);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runtime.counts().decisions, 800U);
  EXPECT_EQ(runtime.counts().dispatches, 800U);
}

// An invalid variable is an event of each reading of the settings; its callback changes them as another thread could.
TEST_F(WorkflowTest, DecisionsReadSettingsOnce) {
  constexpr unsigned kMost = 8;
  for (unsigned changed_after = 0; changed_after < kMost; ++changed_after) {
    std::optional<Runtime> runtime;
    unsigned reads = 0;
    const auto change = [&](bool deterministic) {
      fixture_.rewrites.set(("invalid " + std::to_string(changed_after * kMost + reads)).c_str());
      runtime->set_deterministic(deterministic);
    };
    SessionOptions options;
    options.settings = {{"cache.dir", RuntimeFixture::cache()}};
    options.on_event = [&](const Event& event) {
      if (event.kind != Event::Kind::ConfigWarning || !runtime || reads >= kMost) return;
      ++reads;
      change(reads > changed_after);
    };
    runtime.emplace(Session::open(std::move(options)).value());
    const auto workflow = Workflow::begin(*runtime, "changed", {&kUnorderedStep}, of(1));
    ASSERT_TRUE(workflow.has_value()) << workflow.error().message;
    change(false);
    const auto decision = runtime->decide(kUnorderedStep, of(1));
    EXPECT_EQ(reads, 1U);
    EXPECT_EQ(decision.has_value(), changed_after > 0);
    fixture_.rewrites.set(nullptr);
  }
}

TEST_F(WorkflowTest, CpuOperationInsideHasNoCpuDevice) {
  Runtime runtime(fixture_.session());
  const auto workflow = Workflow::begin(runtime, "on PoCL", {&kDoubling}, of(1000));
  ASSERT_TRUE(workflow.has_value()) << workflow.error().message;
  EXPECT_TRUE(workflow->decision().cpu_device);
  const auto outer = Dispatch::begin(runtime, kHostStep, of(1000));
  ASSERT_TRUE(outer.has_value());
  EXPECT_FALSE(outer->decision().cpu_device);
  EXPECT_FALSE(runtime.decide(kHostStep, of(1000)).value().cpu_device);
}

TEST_F(WorkflowTest, RequiresAtLeastOneOperation) {
  Runtime runtime(fixture_.session());
  const auto workflow = Workflow::begin(runtime, "empty", {}, of(1));
  ASSERT_FALSE(workflow.has_value());
  EXPECT_EQ(workflow.error().code, Code::InvalidArgument);
}

}  // namespace
}  // namespace kiln::test
