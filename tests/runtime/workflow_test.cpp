// Workflows on PoCL, which really executes.
#include <gtest/gtest.h>

#include <thread>

#include "support/doubling.hpp"

namespace kiln::test {
namespace {

using runtime::Backend;
using runtime::Dispatch;
using runtime::Mode;
using runtime::Reason;
using runtime::Request;
using runtime::Runtime;
using runtime::Workflow;

using Step = Result<int>(Dispatch&);
Result<int> step(Dispatch&) { return 0; }
constexpr runtime::Implementation<Step> step_on(Backend backend, std::uint64_t crossover = 0) {
  runtime::Variant variant;
  variant.backend = backend;
  variant.crossover = crossover;
  return {variant, &step};
}
constexpr auto kHostStep =
    runtime::operation<Step>("host step", runtime::PrecisionClass::Metric, step_on(Backend::Cpu));
constexpr auto kDeviceStep =
    runtime::operation<Step>("device step", runtime::PrecisionClass::Metric, step_on(Backend::OpenCl));
constexpr auto kLateStep = runtime::operation<Step>("late step", runtime::PrecisionClass::Metric, step_on(Backend::Cpu),
                                                    step_on(Backend::OpenCl, 5000));

Request of(std::uint64_t rows) {
  Request request;
  request.rows = rows;
  return request;
}

class WorkflowTest : public testing::Test {
 protected:
  RuntimeRig rig_;
};

TEST_F(WorkflowTest, DecidesOnceForAllThatRunsInIt) {
  Runtime runtime(rig_.session());
  std::uint64_t number = 0;
  {
    const auto workflow = Workflow::begin(runtime, "twice", {&kDoubling}, of(1000));
    ASSERT_TRUE(workflow.ok()) << workflow.error().message;
    number = workflow->decision().number;
    runtime.set_mode(Mode::Cpu);
    EXPECT_TRUE(doubled(runtime, 1000).ok());
    EXPECT_TRUE(doubled(runtime, 3).ok()) << "by itself it would be too small";
  }
  const Event decided = rig_.only(Event::Kind::Decided);
  EXPECT_EQ(decided.work.operation, "twice");
  EXPECT_EQ(decided.work.workflow, number);
  const std::vector<Event> ran = rig_.events(Event::Kind::Dispatched);
  ASSERT_EQ(ran.size(), 2U);
  for (const Event& one : ran) {
    EXPECT_EQ(one.selected, "opencl");
    EXPECT_EQ(one.work.workflow, number);
  }
  EXPECT_NE(ran[0].work.dispatch, ran[1].work.dispatch);
  EXPECT_EQ(runtime.counts().decisions, 1U);
  EXPECT_EQ(WorkScope::current(), nullptr);
}

TEST_F(WorkflowTest, DecidesAgainAtChunkBoundariesAlone) {
  Runtime runtime(rig_.session());
  auto workflow = Workflow::begin(runtime, "chunks", {&kDoubling}, of(1000));
  ASSERT_TRUE(workflow.ok());
  const std::uint64_t first = workflow->decision().number;
  {
    const auto dispatch = Dispatch::begin(runtime, kDoubling, of(3));
    ASSERT_TRUE(dispatch.ok());
    const Status inside = workflow->next_chunk(of(3));
    ASSERT_FALSE(inside.ok());
    EXPECT_EQ(inside.error().code, Code::InvalidArgument);
  }
  ASSERT_TRUE(workflow->next_chunk(of(3)).ok());
  EXPECT_EQ(workflow->decision().selected, Backend::Cpu);
  EXPECT_NE(workflow->decision().number, first);
  EXPECT_EQ(WorkScope::current()->workflow, workflow->decision().number);
  EXPECT_TRUE(doubled(runtime, 1000).ok());
  EXPECT_EQ(rig_.events(Event::Kind::Dispatched).back().selected, "cpu");
  EXPECT_EQ(rig_.log.count(Event::Kind::Decided), 2U);
}

TEST_F(WorkflowTest, TakesABackendThatEveryOperationHasAVariantFor) {
  Runtime runtime(rig_.session());
  const auto workflow = Workflow::begin(runtime, "mixed", {&kDoubling, &kHostStep}, of(1000));
  ASSERT_TRUE(workflow.ok());
  EXPECT_EQ(workflow->decision().selected, Backend::Cpu);
  runtime.set_mode(Mode::Gpu);
  std::thread([&] {
    const auto none = Workflow::begin(runtime, "mixed", {&kDoubling, &kHostStep}, of(1000));
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code, Code::Unsupported);
  }).join();
}

TEST_F(WorkflowTest, HasTheLargestCrossoverOfItsOperations) {
  Runtime runtime(rig_.session());
  {
    const auto workflow = Workflow::begin(runtime, "both", {&kDoubling, &kLateStep}, of(1000));
    EXPECT_EQ(workflow->decision().reason, Reason::TooSmall);
    EXPECT_EQ(workflow->decision().crossover, 5000U);
  }
  const auto workflow = Workflow::begin(runtime, "both", {&kDoubling, &kLateStep}, of(5000));
  EXPECT_EQ(workflow->decision().selected, Backend::OpenCl);
}

TEST_F(WorkflowTest, TheOutermostDecides) {
  Runtime runtime(rig_.session());
  const auto outer = Workflow::begin(runtime, "outer", {&kDoubling}, of(1000));
  ASSERT_TRUE(outer.ok());
  {
    auto inner = Workflow::begin(runtime, "inner", {&kDoubling}, of(1));
    ASSERT_TRUE(inner.ok());
    EXPECT_EQ(inner->decision().selected, Backend::OpenCl);
    EXPECT_EQ(inner->decision().number, outer->decision().number);
    EXPECT_TRUE(inner->next_chunk(of(1)).ok());
    EXPECT_EQ(inner->decision().number, outer->decision().number);
  }
  EXPECT_EQ(rig_.log.count(Event::Kind::Decided), 1U);
}

TEST_F(WorkflowTest, InsideOfAnotherItIsOnOneSideAsAWholeToo) {
  Runtime runtime(rig_.session());
  const auto outer = Workflow::begin(runtime, "outer", {&kDoubling}, of(1000));
  ASSERT_TRUE(outer.ok());
  const auto inner = Workflow::begin(runtime, "inner", {&kDoubling, &kHostStep}, of(1000));
  ASSERT_TRUE(inner.ok());
  EXPECT_EQ(inner->decision().selected, Backend::Cpu);
  EXPECT_EQ(inner->decision().number, outer->decision().number);
  EXPECT_TRUE(has(rig_.only(Event::Kind::FellBack).message, "host step has no variant for opencl"));
  EXPECT_EQ(runtime.decide(kDoubling, of(1000)).value().selected, Backend::Cpu);
}

TEST_F(WorkflowTest, AnOperationThatCannotFollowFallsBackWithAnEventOrIsAnError) {
  Runtime runtime(rig_.session());
  {
    const auto workflow = Workflow::begin(runtime, "forgetful", {&kDoubling}, of(1000));
    ASSERT_TRUE(workflow.ok());
    const auto decision = runtime.decide(kHostStep, of(1000));
    ASSERT_TRUE(decision.ok());
    EXPECT_TRUE(decision->fallback);
    EXPECT_EQ(decision->selected, Backend::Cpu);
    const Event told = rig_.only(Event::Kind::FellBack);
    EXPECT_TRUE(has(told.message, "host step has no variant for opencl, on which forgetful runs"));
    EXPECT_EQ(told.work.workflow, workflow->decision().number);
    EXPECT_FALSE(runtime.decide(kHostStep, {1000, Residency::Device, Backend::OpenCl}).ok());
  }
  runtime.set_mode(Mode::Cpu);
  const auto workflow = Workflow::begin(runtime, "forgetful", {&kDoubling}, of(1000));
  ASSERT_TRUE(workflow.ok());
  const auto decision = runtime.decide(kDeviceStep, of(1000));
  ASSERT_FALSE(decision.ok());
  EXPECT_EQ(decision.error().code, Code::Unsupported);
}

TEST_F(WorkflowTest, RowsOnADeviceAreNotDemotedByAWorkflowOnTheProcessor) {
  Runtime runtime(rig_.session());
  const auto workflow = Workflow::begin(runtime, "small", {&kDoubling}, of(1));
  ASSERT_EQ(workflow->decision().selected, Backend::Cpu);
  const auto decision = runtime.decide(kDoubling, {1000, Residency::Device, Backend::OpenCl});
  ASSERT_FALSE(decision.ok());
  EXPECT_TRUE(has(decision.error().message, "materialise them first"));
}

TEST_F(WorkflowTest, IsItsOwnThreadsAndItsOwnRuntimes) {
  Session session = rig_.session();
  Runtime runtime(session);
  Runtime other(session);
  const auto workflow = Workflow::begin(runtime, "mine", {&kDoubling}, of(1000));
  ASSERT_TRUE(workflow.ok());
  EXPECT_EQ(other.decide(kDoubling, of(1)).value().selected, Backend::Cpu);
  std::thread([&] { EXPECT_EQ(runtime.decide(kDoubling, of(1)).value().selected, Backend::Cpu); }).join();
}

TEST_F(WorkflowTest, ThreadsDecideWhileAnotherSetsTheMode) {
  Runtime runtime(rig_.session());
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        const auto workflow = Workflow::begin(runtime, "busy", {&kLateStep}, of(4900 + i));
        ASSERT_TRUE(workflow.ok()) << workflow.error().message;
        const auto dispatch = Dispatch::begin(runtime, kLateStep, of(i));
        ASSERT_TRUE(dispatch.ok());
        EXPECT_EQ(dispatch->decision().selected, workflow->decision().selected);
        EXPECT_EQ(dispatch->decision().number, workflow->decision().number);
      }
    });
  }
  for (int i = 0; i < 50; ++i) runtime.set_mode(i % 2 == 0 ? std::optional(Mode::Cpu) : std::nullopt);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(runtime.counts().decisions, 800U);
  EXPECT_EQ(runtime.counts().dispatches, 800U);
}

TEST_F(WorkflowTest, NamesAnOperationAtLeast) {
  Runtime runtime(rig_.session());
  const auto workflow = Workflow::begin(runtime, "empty", {}, of(1));
  ASSERT_FALSE(workflow.ok());
  EXPECT_EQ(workflow.error().code, Code::InvalidArgument);
}

}  // namespace
}  // namespace kiln::test
