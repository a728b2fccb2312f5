// Runs on PoCL, which really executes.
#include <gtest/gtest.h>

#include "support/doubling.hpp"
#include "support/eventually.hpp"
#include "support/patience.hpp"

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
  RuntimeRig rig_;
};

TEST_F(DispatchTest, RunsTheVariantThatWasDecidedForAndSaysWhereItRan) {
  Runtime runtime(rig_.session());
  EXPECT_EQ(doubled(runtime, 1000).value(), Numbers(1000, 2.0F));
  const Event decided = rig_.only(Event::Kind::Decided);
  const Event told = rig_.only(Event::Kind::Dispatched);
  EXPECT_EQ(told.requested, "auto");
  EXPECT_EQ(told.origin, "opencl");
  EXPECT_EQ(told.selected, "opencl");
  EXPECT_EQ(told.target, decided.target);
  EXPECT_EQ(told.work.operation, "doubling");
  EXPECT_EQ(told.work.rows, 1000U);
  EXPECT_EQ(told.work.workflow, decided.work.workflow);
  EXPECT_NE(told.work.dispatch, 0U);
  EXPECT_NE(told.work.dispatch, told.work.workflow);
  EXPECT_GT(told.ms, 0);
  EXPECT_EQ(runtime.counts().dispatches, 1U);
  EXPECT_EQ(runtime.counts().on_device, 1U);
}

TEST_F(DispatchTest, WhatTheThreadDoesMeanwhileIsToldUnderItsName) {
  Runtime runtime(rig_.session());
  ASSERT_TRUE(doubled(runtime, 1000).ok());
  const std::uint64_t number = rig_.only(Event::Kind::Dispatched).work.dispatch;
  const Event launched = rig_.only(Event::Kind::Launched);
  EXPECT_EQ(launched.work.operation, "doubling");
  EXPECT_EQ(launched.work.stage, "scale");
  EXPECT_EQ(launched.work.dispatch, number);
  std::vector<Purpose> purposes;
  for (const Event& copied : rig_.events(Event::Kind::Copied)) {
    EXPECT_EQ(copied.work.dispatch, number);
    purposes.push_back(copied.work.purpose);
  }
  EXPECT_EQ(purposes, (std::vector<Purpose>{Purpose::Input, Purpose::Materialise}));
  const Event materialised = rig_.only(Event::Kind::Materialised);
  EXPECT_EQ(materialised.bytes, 1000 * sizeof(float));
  EXPECT_EQ(materialised.work.dispatch, number);
  EXPECT_EQ(WorkScope::current(), nullptr);
}

TEST_F(DispatchTest, AProcessorsRunIsToldToo) {
  Runtime runtime(rig_.session());
  EXPECT_EQ(doubled(runtime, 5).value(), Numbers(5, 2.0F));
  const Event told = rig_.only(Event::Kind::Dispatched);
  EXPECT_EQ(told.origin, "cpu");
  EXPECT_EQ(told.selected, "cpu");
  EXPECT_EQ(rig_.only(Event::Kind::StageRan).selected, "host");
  EXPECT_EQ(runtime.counts().on_device, 0U);
}

TEST_F(DispatchTest, ADeviceIsClaimedOnlyWhereAKernelWasLaunched) {
  Runtime runtime(rig_.session());
  runtime.set_mode(Mode::Gpu);
  {
    const auto dispatch = Dispatch::begin(runtime, kDoubling, {.rows = 1000});
    ASSERT_TRUE(dispatch.ok()) << dispatch.error().message;
    EXPECT_EQ(dispatch->decision().selected, Backend::OpenCl);
  }
  const Event told = rig_.only(Event::Kind::Dispatched);
  EXPECT_EQ(told.origin, "opencl");
  EXPECT_EQ(told.selected, "cpu");
  EXPECT_TRUE(has(told.message, "no kernel was launched"));
  EXPECT_EQ(runtime.counts().on_device, 0U);
}

TEST_F(DispatchTest, ARunThatIsColdRequestsWhatItNeedsAndALaterOneIsWarm) {
  Runtime runtime(rig_.session());
  const Decision cold = runtime.decide(kDoubling, {.rows = 1000}).value();
  EXPECT_FALSE(cold.warm) << "a decision waits for nothing";
  EXPECT_TRUE(eventually([&] { return runtime.decide(kDoubling, {.rows = 1000}).value().warm; }, kPatience));
  EXPECT_TRUE(runtime.decide(kDoubling, {.rows = 5}).value().warm) << "the processor's compiles nothing";
}

TEST_F(DispatchTest, WhereTheDeviceFailsAutoGoesOnOnTheProcessorWithAnEvent) {
  Runtime runtime(rig_.session());
  Result<int> answer = runtime::run(runtime, kFailing, {.rows = 1000}, Code::Unavailable);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(*answer, kOfCpu);
  const Event told = rig_.only(Event::Kind::FellBack);
  EXPECT_EQ(told.requested, "auto");
  EXPECT_EQ(told.selected, "cpu");
  EXPECT_TRUE(has(told.message, "the variant for opencl failed: as it was told to"));
  const Event dispatched = rig_.only(Event::Kind::Dispatched);
  EXPECT_EQ(told.work.dispatch, dispatched.work.dispatch);
  EXPECT_EQ(dispatched.origin, "opencl");
  EXPECT_EQ(dispatched.selected, "cpu");
  EXPECT_EQ(runtime.counts().fallbacks, 1U);
}

TEST_F(DispatchTest, AFailureStaysOneWhereTheDeviceWasAskedForOrHasTheRowsOrItIsTheCallersFault) {
  Runtime runtime(rig_.session());
  EXPECT_FALSE(runtime::run(runtime, kFailing, {.rows = 1000}, Code::InvalidArgument).ok());
  EXPECT_FALSE(runtime::run(runtime, kFailing, {1000, Residency::Device, Backend::OpenCl}, Code::Io).ok());
  runtime.set_mode(Mode::Gpu);
  EXPECT_FALSE(runtime::run(runtime, kFailing, {.rows = 1000}, Code::Io).ok());
  EXPECT_EQ(rig_.log.count(Event::Kind::FellBack), 0U);
}

TEST_F(DispatchTest, ARunInsideOfARunFollowsItAndHasANumberOfItsOwn) {
  Runtime runtime(rig_.session());
  runtime.set_mode(Mode::Gpu);
  std::uint64_t outer = 0;
  {
    const auto dispatch = Dispatch::begin(runtime, kFailing, {.rows = 1});
    ASSERT_TRUE(dispatch.ok());
    outer = WorkScope::current()->dispatch;
    runtime.set_mode(Mode::Cpu);
    EXPECT_EQ(doubled(runtime, 3).value(), Numbers(3, 2.0F));
    EXPECT_EQ(WorkScope::current()->dispatch, outer);
  }
  const std::vector<Event> told = rig_.events(Event::Kind::Dispatched);
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0].work.operation, "doubling");
  EXPECT_EQ(told[0].selected, "opencl") << "by the decision of the run around it";
  EXPECT_NE(told[0].work.dispatch, outer);
  EXPECT_EQ(told[0].work.workflow, told[1].work.workflow);
  EXPECT_EQ(told[1].selected, "opencl") << "what is launched inside of it is launched in it";
  EXPECT_EQ(rig_.log.count(Event::Kind::Decided), 1U);
}

TEST_F(DispatchTest, StagesAreToldAndRememberedAndWaitOnlyToBeTimed) {
  Session session = rig_.session();
  {
    Runtime runtime(session);
    ASSERT_TRUE(doubled(runtime, 1000).ok());
    EXPECT_EQ(rig_.log.count(Event::Kind::Synchronised), 0U);
    const Event told = rig_.only(Event::Kind::StageRan);
    EXPECT_EQ(told.work.stage, "scale");
    EXPECT_EQ(told.selected, "opencl");
    ASSERT_EQ(runtime.last_stages().size(), 1U);
    EXPECT_EQ(runtime.last_stages()[0].where, "opencl");
  }
  rig_.time_stages.set("1");
  Runtime runtime(session);
  ASSERT_TRUE(doubled(runtime, 1000).ok());
  const Event waited = rig_.only(Event::Kind::Synchronised);
  EXPECT_EQ(waited.work.purpose, Purpose::Trace);
  EXPECT_EQ(waited.work.stage, "scale");
}

TEST_F(DispatchTest, AStageThatComputesOnTheHostSaysSo) {
  Runtime runtime(rig_.session());
  runtime.set_mode(Mode::Gpu);
  {
    auto dispatch = Dispatch::begin(runtime, kDoubling, {.rows = 1000});
    ASSERT_TRUE(dispatch.ok());
    Stage stage(*dispatch, "sizes");
    stage.on_host();
    WorkScope::count_launch();
  }
  EXPECT_EQ(rig_.only(Event::Kind::StageRan).selected, "host");
}

TEST_F(DispatchTest, ACopyThatIsNoMaterialisationIsNotToldAsOne) {
  Runtime runtime(rig_.session());
  {
    const Transfer transfer(runtime, Purpose::Size);
    EXPECT_EQ(WorkScope::current()->purpose, Purpose::Size);
  }
  EXPECT_EQ(rig_.log.count(Event::Kind::Materialised), 0U);
}

}  // namespace
}  // namespace kiln::test
