// SPDX-License-Identifier: Apache-2.0
// The parts of the audit report other than the findings, on hand-written traces.
#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/audit/audit.hpp"
#include "support/fixtures/traces.hpp"

namespace kiln::test {
namespace {

using audit::Answer;
using audit::ReadUse;
using audit::Verdict;

const audit::HostReads* reads_with(const audit::Report& report, ReadUse use) {
  const auto at = std::find_if(report.reads.begin(), report.reads.end(),
                               [use](const audit::HostReads& reads) { return reads.use == use; });
  return at == report.reads.end() ? nullptr : &*at;
}

void fenced_run(HandMadeTrace& trace) {
  trace.begin("auto", "cuda");
  trace.launched("count");
  trace.copied_out(4);
  trace.allocated(400);
  trace.launched("fill");
  trace.copied_out(8000, Purpose::Materialize);
  trace.dispatched("cuda");
}

// ------------------------------------------------------------------------------------------------------- inconclusive

TEST(AuditVerdict, TraceWithoutEvidenceIsInconclusive) {
  HandMadeTrace trace;
  trace.emit(trace.made(Event::Kind::Hit));
  const audit::Report report = trace.report();
  EXPECT_EQ(report.verdict(), Verdict::Inconclusive);
  EXPECT_FALSE(report.clean());
  ASSERT_EQ(report.missing.size(), 1U);
  EXPECT_EQ(report.missing.front().what, "the trace has no launch, copy, wait or decision");
  EXPECT_NE(report.missing.front().action.find("KILN_TRACE"), std::string::npos);
  EXPECT_EQ(report.cpu_shaped, Answer::NotEnoughEvidence);
  EXPECT_TRUE(report.cause.starts_with("Unknown: ")) << report.cause;
}

TEST(AuditVerdict, CopiesWithoutLaunchOrDecisionAreInconclusive) {
  HandMadeTrace trace;
  trace.copied_in(1000);
  trace.synchronized();
  EXPECT_EQ(trace.report().verdict(), Verdict::Inconclusive);
}

TEST(AuditVerdict, OperationWithoutLaunchOrDecisionIsInconclusive) {
  HandMadeTrace trace;
  trace.work().operation = "my.filter";
  trace.work().dispatch = 7;
  trace.stage_finished("parse", "host", 3);
  EXPECT_EQ(trace.report().verdict(), Verdict::Inconclusive);
}

TEST(AuditVerdict, DecisionForTheCpuIsEvidence) {
  HandMadeTrace trace;
  trace.begin("auto", "cpu");
  trace.dispatched("cpu");
  const audit::Report report = trace.report();
  EXPECT_EQ(report.verdict(), Verdict::Clean);
  EXPECT_EQ(report.cpu_shaped, Answer::NotEnoughEvidence) << "nothing ran on a device";
}

TEST(AuditVerdict, DroppedEventsAreMissingEvidence) {
  HandMadeTrace full(TraceWriter::Options{.max_events = 3});
  fenced_run(full);
  const audit::Report report = full.report();
  EXPECT_EQ(report.verdict(), Verdict::Inconclusive);
  ASSERT_EQ(report.missing.size(), 1U);
  EXPECT_EQ(report.missing.front().what, "4 events are missing at the end of the trace");
}

TEST(AuditVerdict, TraceOfAnotherProfilerWithoutCopiesIsInconclusive) {
  HandMadeTrace trace;
  fenced_run(trace);
  audit::Trace parsed = audit::parse_trace(trace.json()).value();
  parsed.not_recorded = {"memory allocations"};
  EXPECT_EQ(run_audit(parsed).verdict(), Verdict::Clean);
  EXPECT_EQ(run_audit(parsed).missing.size(), 1U) << "listed, but not decisive";
  parsed.not_recorded.push_back("copies");
  const audit::Report report = run_audit(parsed);
  EXPECT_EQ(report.verdict(), Verdict::Inconclusive);
  EXPECT_EQ(report.missing.back().what, "the trace was recorded without copies");
  EXPECT_EQ(report.cpu_shaped, Answer::NotEnoughEvidence);
}

TEST(AuditVerdict, FindingsTakePrecedenceAndMissingEvidenceIsListed) {
  HandMadeTrace trace;
  trace.emit(trace.made(Event::Kind::BlockingCompile));
  const audit::Report report = trace.report();
  EXPECT_EQ(report.verdict(), Verdict::Findings);
  EXPECT_TRUE(report.lacks_evidence());
}

// --------------------------------------------------------------------------------------------------------- CPU device

TEST(AuditReport, CpuDeviceIsNotAGpu) {
  HandMadeTrace trace;
  trace.begin("auto", "opencl");
  Event launched = trace.made(Event::Kind::Launched, "fill");
  launched.target = "pocl";
  launched.cpu_device = true;
  trace.emit(launched);
  trace.dispatched("opencl");
  const audit::Report report = trace.report();
  EXPECT_EQ(report.counts.total, 1U);
  EXPECT_EQ(report.counts.on_cpu_device, 1U);
  EXPECT_EQ(report.counts.on_device, 0U);
  EXPECT_DOUBLE_EQ(report.counts.acceleration(), 0);
  EXPECT_EQ(report.launches_on_cpu_device, 1U);
  EXPECT_EQ(report.stayed, audit::Report::StayedOnDevice::Yes) << "the flow rules apply to it";
}

TEST(AuditReport, CpuDeviceIsNamed) {
  HandMadeTrace trace;
  Event launched = trace.made(Event::Kind::Launched, "fill");
  launched.target = "pocl";
  launched.cpu_device = true;
  trace.emit(launched);
  EXPECT_EQ(trace.report().devices, std::vector<std::string>({"pocl (CPU device, not a GPU)"}));
}

// ---------------------------------------------------------------------------------------------------- reads and waits

TEST(AuditReport, ReadsAreTerminalFencesOrDefects) {
  HandMadeTrace trace;
  fenced_run(trace);
  trace.begin("auto", "cuda");
  trace.launched("first");
  trace.copied_out(80'000);
  trace.launched("second");
  trace.copied_out(8, Purpose::Trace);
  trace.dispatched("cuda");
  const audit::Report report = trace.report();
  ASSERT_EQ(report.reads.size(), 4U);
  EXPECT_EQ(reads_with(report, ReadUse::AllocationFence)->bytes, 4U);
  EXPECT_EQ(reads_with(report, ReadUse::AllocationFence)->operation, "test.pipeline");
  EXPECT_EQ(reads_with(report, ReadUse::Terminal)->bytes, 8000U);
  EXPECT_EQ(reads_with(report, ReadUse::Defect)->bytes, 80'000U);
  EXPECT_EQ(reads_with(report, ReadUse::Tracing)->bytes, 8U);
}

TEST(AuditReport, EveryDefectIsClassified) {
  HandMadeTrace trace;
  for (int i = 0; i < 40; ++i) {
    trace.launched("relax");
    trace.copied_out(4);
  }
  const audit::Report report = trace.report();
  EXPECT_EQ(reads_with(report, ReadUse::Defect)->count, 39U) << "also those beyond the listed events";
  EXPECT_EQ(reads_with(report, ReadUse::Terminal)->count, 1U) << "the last one";
}

TEST(AuditReport, WaitsAreTheCallersOrAWrappers) {
  HandMadeTrace trace;
  trace.launched("a");
  trace.synchronized();  // outside of operations
  trace.begin("auto", "cuda");
  trace.launched("b");
  trace.synchronized();  // in a Dispatch
  trace.synchronized(HandMadeTrace::kStream, Purpose::Trace);
  trace.dispatched("cuda");
  trace.work().operation = "mine";
  trace.work().dispatch = 50;
  trace.launched("c");
  trace.synchronized();  // in the outermost operation that the program declared
  trace.work().stage = "inner";
  trace.synchronized();
  trace.work() = {"library", "", 51, 0, 0, Residency::Unknown, Purpose::Unspecified};
  trace.synchronized();  // in an operation that the outermost one calls
  trace.work() = {"mine", "", 50, 0, 0, Residency::Unknown, Purpose::Unspecified};
  trace.copied_out(4);
  const audit::Waits waits = trace.report().waits;
  EXPECT_EQ(waits.caller.count, 2U);
  EXPECT_EQ(waits.caller.operation, "thread 1, stream 1");
  EXPECT_EQ(waits.wrapper.count, 3U);
  EXPECT_EQ(waits.wrapper.operation, "test.pipeline");
  EXPECT_EQ(waits.tracing.count, 1U);
}

// -------------------------------------------------------------------------------------------------- shape and answers

std::string shape_of(const std::vector<const char*>& kernels) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  for (const char* kernel : kernels) trace.launched(kernel);
  trace.dispatched("cuda");
  return trace.report().operations.front().shape;
}

TEST(AuditReport, ShapeCollapsesRepetitions) {
  EXPECT_EQ(shape_of({"filter", "compact", "refine"}), "filter → compact → refine");
  EXPECT_EQ(shape_of({"filter", "sort", "sort", "sort"}), "filter → sort ×3");
  EXPECT_EQ(shape_of({"a", "b", "a", "b", "a", "b"}), "(a → b) ×3");
  EXPECT_EQ(shape_of({"a", "b", "a", "b", "c", "a", "b", "a", "b", "c"}), "((a → b) ×2 → c) ×2");
  EXPECT_EQ(shape_of({"a", "s", "s", "s", "b", "a", "s", "s", "s", "b", "c"}), "(a → s ×3 → b) ×2 → c");
}

TEST(AuditReport, ShapeOfMostRunsIsShown) {
  HandMadeTrace trace;
  for (const int passes : {8, 8, 4}) {
    trace.begin("auto", "cuda");
    for (int pass = 0; pass < passes; ++pass) trace.launched("sort");
    trace.dispatched("cuda");
  }
  const audit::OperationSum sum = trace.report().operations.front();
  EXPECT_EQ(sum.shape, "sort ×8");
  EXPECT_EQ(sum.shapes, 2U);
  EXPECT_EQ(sum.runs, 3U);
  EXPECT_EQ(sum.launches, 20U);
}

TEST(AuditReport, AnswersWhetherItIsCpuShaped) {
  HandMadeTrace clean;
  fenced_run(clean);
  EXPECT_EQ(clean.report().cpu_shaped, Answer::Disproved);
  HandMadeTrace faulty;
  faulty.begin("auto", "cuda");
  faulty.launched("a");
  faulty.synchronized();
  faulty.launched("b");
  faulty.dispatched("cuda");
  const audit::Report report = faulty.report();
  EXPECT_EQ(report.cpu_shaped, Answer::Supported);
  EXPECT_TRUE(report.cpu_shaped_evidence.starts_with("sync_between_launches in test.pipeline"))
      << report.cpu_shaped_evidence;
}

TEST(AuditReport, TargetsAreTheFirstThreeDifferentThings) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  for (const char* kernel : {"a", "b", "c", "d"}) {
    for (int i = 0; i < 20; ++i) trace.launched(kernel, 2);
  }
  trace.synchronized();
  trace.launched("e");
  trace.dispatched("cuda");
  const audit::Report report = trace.report();
  ASSERT_EQ(report.findings.size(), 5U) << "one for each kernel";
  ASSERT_EQ(report.targets.size(), 2U);
  EXPECT_STREQ(report.targets[0].rule->name, "sync_between_launches");
  EXPECT_STREQ(report.targets[1].rule->name, "many_tiny_launches");
  EXPECT_EQ(report.targets[1].operation, "test.pipeline");
}

}  // namespace
}  // namespace kiln::test
