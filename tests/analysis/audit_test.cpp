// SPDX-License-Identifier: Apache-2.0
// Rules and report of the audit, on hand-written traces. audit_pipeline_test.cpp audits real pipelines.
#include "analysis/audit/audit.hpp"

#include <gtest/gtest.h>

#include "support/fixtures/traces.hpp"

namespace kiln::test {
namespace {

using Found = std::vector<std::string>;

// A clean run on a device: rows in, two kernels, one scalar that sizes an allocation, a third kernel.
void clean_run(HandMadeTrace& trace) {
  trace.begin("auto", "cuda");
  trace.copied_in(8000);
  trace.launched("count");
  trace.copied_out(4, Purpose::AllocationSize);
  trace.allocated(400);
  trace.launched("fill");
  trace.stage_finished("fill", "cuda", 3);
  trace.copied_out(8000, Purpose::Materialize);
  trace.dispatched("cuda");
}

TEST(Audit, CleanRunHasNoFindings) {
  HandMadeTrace trace;
  clean_run(trace);
  const audit::Report report = trace.report();
  EXPECT_EQ(found_in(report), Found());
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.stayed, audit::Report::StayedOnDevice::Yes);
  EXPECT_EQ(report.cause, "No finding.");
  EXPECT_EQ(report.devices, Found({"a device made by hand"}));
  EXPECT_EQ(report.rows, 1000U);
}

TEST(Audit, ScalarWithSizePurposeButNoAllocationIsFound) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("count");
  trace.copied_out(4, Purpose::AllocationSize);
  trace.launched("fill");
  trace.allocated(400);
  trace.dispatched("cuda");
  EXPECT_EQ(found_in(trace.report()), Found({"HIGH copy_feeds_device_work"}));
}

TEST(Audit, OneAllocationExcusesOneScalar) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("count");
  for (int i = 0; i < 4; ++i) trace.copied_out(4, Purpose::AllocationSize);
  trace.allocated(400);
  trace.launched("fill");
  trace.dispatched("cuda");
  const audit::Report report = trace.report();
  ASSERT_EQ(found_in(report), Found({"MEDIUM repeated_small_reads"}));
  EXPECT_EQ(report.findings.front().count, 3U);
}

TEST(Audit, LargerReadBeforeAllocationIsFound) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("count");
  trace.copied_out(65, Purpose::AllocationSize);
  trace.allocated(400);
  trace.launched("fill");
  trace.dispatched("cuda");
  EXPECT_EQ(found_in(trace.report()), Found({"HIGH copy_feeds_device_work"}));
}

TEST(Audit, ReleaseIsNotAnAllocation) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("count");
  trace.copied_out(4, Purpose::AllocationSize);
  trace.allocated(400, "released");
  trace.launched("fill");
  trace.dispatched("cuda");
  EXPECT_EQ(found_in(trace.report()), Found({"HIGH copy_feeds_device_work"}));
}

TEST(Audit, TracingWaitsAndReadsAreNotFindings) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  for (int i = 0; i < 5; ++i) {
    trace.launched("step");
    trace.synchronized(HandMadeTrace::kStream, Purpose::Trace);
    trace.copied_out(8, Purpose::Trace);
  }
  trace.dispatched("cuda");
  const audit::Report report = trace.report();
  EXPECT_EQ(found_in(report), Found());
  EXPECT_TRUE(report.stages_synchronized);
}

TEST(Audit, SmallFixedLoopIsNotAFinding) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  for (int i = 0; i < 8; ++i) {
    trace.allocated(1024);
    trace.launched("radix_pass", 2);
  }
  trace.dispatched("cuda");
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(Audit, MaterializationIsExcusedOnlyAtEndOfRun) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("first");
  trace.copied_out(80'000, Purpose::Materialize);
  trace.launched("second");
  trace.copied_out(80'000, Purpose::Materialize);
  trace.dispatched("cuda");
  const audit::Report report = trace.report();
  ASSERT_EQ(found_in(report), Found({"HIGH copy_feeds_device_work"}));
  EXPECT_EQ(report.findings.front().bytes, 80'000U);
  EXPECT_EQ(report.stayed, audit::Report::StayedOnDevice::No);
}

TEST(Audit, WaitBeforeReadIsNotAFinding) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("first");
  trace.synchronized();
  trace.copied_out(4);
  trace.allocated(100);
  trace.launched("second");
  trace.synchronized();
  trace.dispatched("cuda");
  EXPECT_EQ(found_in(trace.report()), Found()) << "the last wait has no launch after it";
}

TEST(Audit, WaitForAnotherStreamIsNotBetweenLaunches) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("first");
  trace.synchronized(0x99);
  trace.launched("second");
  trace.dispatched("cuda");
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(Audit, ReportedFallbackIsCountedButNotAFinding) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.emit(trace.made(runtime::events::kFellBack, "the device is lost"));
  trace.dispatched("cpu");
  clean_run(trace);
  const audit::Report report = trace.report();
  EXPECT_EQ(found_in(report), Found());
  EXPECT_EQ(report.counts.total, 2U);
  EXPECT_EQ(report.counts.on_device, 1U);
  EXPECT_EQ(report.counts.fallbacks, 1U);
  EXPECT_DOUBLE_EQ(report.counts.acceleration(), 0.5);
}

TEST(Audit, RunWithoutRowsNeedsNoLaunch) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda", Residency::Host, 0);
  trace.dispatched("cpu");
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(Audit, OperationIncludesLaunchesOfNestedOperations) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  const OperationContext outer = trace.work();
  trace.stage_finished("plan", "host", 0.1);
  trace.work().operation = "test.inner";
  trace.work().dispatch = 50;
  trace.launched("inner");
  trace.dispatched("cuda");
  trace.work() = outer;
  trace.dispatched("cpu");
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(Audit, CpuSelectedBySizeIsNotAFindingAndCauseIsReported) {
  HandMadeTrace trace;
  trace.begin("auto", "cpu");
  trace.dispatched("cpu");
  const audit::Report report = trace.report();
  EXPECT_EQ(found_in(report), Found());
  EXPECT_EQ(report.stayed, audit::Report::StayedOnDevice::NotApplicable);
  EXPECT_NE(report.cause.find("as the test wants it"), std::string::npos) << report.cause;
}

TEST(Audit, NewDecisionPerChunkIsAllowed) {
  HandMadeTrace trace;
  for (int chunk = 0; chunk < 3; ++chunk) clean_run(trace);
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(Audit, DecisionInsideRunIsFound) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("first");
  Event again = trace.made(runtime::events::kDecided, "once more");
  again.requested = "auto";
  again.selected = "cuda";
  again.context.workflow = 90;
  trace.emit(again);
  trace.launched("second");
  trace.dispatched("cuda");
  EXPECT_EQ(found_in(trace.report()), Found({"MEDIUM repeated_decision"}));
}

TEST(Audit, FindingInSomeRunsOnlyIsIncidental) {
  HandMadeTrace trace;
  clean_run(trace);
  trace.begin("auto", "cuda");
  trace.launched("first");
  trace.synchronized();
  trace.launched("second");
  trace.dispatched("cuda");
  const audit::Report some = trace.report();
  ASSERT_EQ(some.findings.size(), 1U);
  EXPECT_FALSE(some.findings.front().structural);
  EXPECT_TRUE(some.change.starts_with("No structural change")) << some.change;

  HandMadeTrace all;
  for (int run = 0; run < 3; ++run) {
    all.begin("auto", "cuda");
    all.launched("first");
    all.synchronized();
    all.launched("second");
    all.dispatched("cuda");
  }
  const audit::Report every = all.report();
  ASSERT_EQ(every.findings.size(), 1U) << "three runs of one operation are one finding";
  EXPECT_TRUE(every.findings.front().structural);
  EXPECT_EQ(every.findings.front().dispatches.size(), 3U);
  EXPECT_EQ(every.findings.front().events, std::vector<std::uint64_t>({3, 8, 13}));
}

TEST(Audit, EarlierCheckRanksBeforeHigherSeverity) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("first");
  trace.synchronized();
  trace.launched("second", 4000, 32);
  for (int i = 0; i < 3; ++i) trace.copied_out(8);
  trace.launched("third");
  Event hot = trace.made(Event::Kind::BlockingCompile, "from a test");
  hot.unit = "third.cu";
  trace.emit(hot);
  trace.dispatched("cuda");
  const audit::Report report = trace.report();
  EXPECT_EQ(found_in(report), Found({"MEDIUM repeated_small_reads", "HIGH sync_between_launches",
                                     "LOW small_fixed_block", "MEDIUM blocking_compile"}));
  EXPECT_EQ(report.worst(), audit::Severity::High);
  EXPECT_NE(report.cause.find("reads small values one by one"), std::string::npos) << report.cause;
  EXPECT_TRUE(report.change.starts_with("Gather the values in one buffer")) << report.change;
}

TEST(Audit, LongestStagesAreSummedOverRuns) {
  HandMadeTrace trace;
  for (int run = 0; run < 2; ++run) {
    trace.begin("auto", "cuda");
    trace.launched("first");
    trace.stage_finished("a", "cuda", 1);
    trace.stage_finished("b", "cuda", 4);
    trace.stage_finished("c", "host", 2);
    trace.stage_finished("d", "cuda", 3);
    trace.dispatched("cuda");
  }
  const audit::Report report = trace.report();
  ASSERT_EQ(report.longest.size(), 3U);
  EXPECT_EQ(report.longest[0].stage, "b");
  EXPECT_DOUBLE_EQ(report.longest[0].ms, 8);
  EXPECT_EQ(report.longest[0].runs, 2U);
  EXPECT_EQ(report.longest[2].stage, "c");
  EXPECT_EQ(report.longest[2].where, "host");
}

TEST(Audit, VaryingOrSufficientBlockIsNotAFinding) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("varies", 4000, 32);
  trace.launched("varies", 4000, 256);
  trace.launched("little", 2, 32);
  trace.launched("half", 4000, 128);
  trace.dispatched("cuda");
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(Audit, RequestedManagedMemoryIsNotAFinding) {
  HandMadeTrace trace;
  Event set = trace.made(runtime::events::kMemoryTierSelected);
  set.requested = set.selected = "managed";
  trace.emit(set);
  clean_run(trace);
  EXPECT_EQ(found_in(trace.report()), Found());
}

}  // namespace
}  // namespace kiln::test
