// SPDX-License-Identifier: Apache-2.0
// The audit of work that belongs to no numbered run, on hand-written traces.
#include <gtest/gtest.h>

#include "analysis/audit/audit.hpp"
#include "support/fixtures/traces.hpp"

namespace kiln::test {
namespace {

using Found = std::vector<std::string>;
constexpr std::uint64_t kRows = 4U << 20;

// The program that the audit called almost clean: every step is a CPU habit.
void planted_iteration(HandMadeTrace& trace) {
  trace.allocated(kRows);
  trace.launched("step", 1);
  trace.synchronized();
  trace.copied_out(kRows);
  trace.copied_in(kRows);
  trace.allocated(kRows, "released");
}

TEST(AuditImplicit, PlantedLoopWithoutOperationsHasItsFindings) {
  HandMadeTrace trace;
  for (int i = 0; i < 40; ++i) planted_iteration(trace);
  const audit::Report report = trace.report();
  EXPECT_EQ(found_in(report), Found({"BLOCKING host_step", "HIGH sync_per_item", "HIGH many_tiny_launches",
                                     "MEDIUM allocation_in_loop"}));
  EXPECT_EQ(report.worst(), audit::Severity::Blocking);
  EXPECT_EQ(report.stayed, audit::Report::StayedOnDevice::No);
  EXPECT_EQ(report.findings.front().operation, "thread 1, stream 1");
  EXPECT_EQ(report.counts.total, 0U);
  EXPECT_EQ(report.counts.undeclared, 1U);
  EXPECT_EQ(report.bytes_out, 40 * kRows);
}

TEST(AuditImplicit, EventsWithoutStreamBelongToLaunchesAroundThem) {
  HandMadeTrace trace;
  for (int i = 0; i < 40; ++i) {
    trace.allocated(kRows, "allocated", 0);
    trace.launched("step", 1);
    trace.synchronized(0);
    trace.copied_out(kRows, Purpose::Unspecified, 0);
    trace.copied_in(kRows, 0);
  }
  EXPECT_EQ(found_in(trace.report()), Found({"BLOCKING host_step", "HIGH sync_per_item", "HIGH many_tiny_launches",
                                             "MEDIUM allocation_in_loop"}));
}

TEST(AuditImplicit, RepairedLoopIsClean) {
  HandMadeTrace trace;
  trace.allocated(kRows);
  trace.copied_in(kRows);
  for (int i = 0; i < 40; ++i) trace.launched("step", 4096);
  trace.synchronized();
  trace.copied_out(kRows);
  const audit::Report report = trace.report();
  EXPECT_EQ(found_in(report), Found());
  EXPECT_EQ(report.stayed, audit::Report::StayedOnDevice::Yes);
}

TEST(AuditImplicit, ReadsBetweenPhasesAreASuspicion) {
  HandMadeTrace trace;
  for (const char* phase : {"load", "join", "group", "sort"}) {
    trace.copied_in(kRows);
    trace.launched(phase);
    trace.synchronized();
    trace.copied_out(kRows);
    trace.launched("summary");
    trace.copied_out(8);
  }
  const audit::Report report = trace.report();
  EXPECT_EQ(found_in(report), Found({"LOW possible_host_step"})) << "each phase has its own kernels";
  EXPECT_EQ(report.stayed, audit::Report::StayedOnDevice::Unclear);
  EXPECT_EQ(report.cpu_shaped, audit::Answer::NotEnoughEvidence);
  EXPECT_EQ(report.unclear_reads(), 4U);
}

TEST(AuditImplicit, ThirdRepetitionMakesALoop) {
  for (int trips = 1; trips <= 4; ++trips) {
    HandMadeTrace trace;
    trace.launched("step");
    for (int i = 0; i < trips; ++i) {
      trace.copied_out(kRows);
      trace.copied_in(kRows);
      trace.launched("step");
    }
    EXPECT_EQ(found_in(trace.report()), Found({trips < 3 ? "LOW possible_host_step" : "BLOCKING host_step"})) << trips;
  }
}

TEST(AuditImplicit, BatchesOfNewRowsAreNotRoundTrips) {
  HandMadeTrace trace;
  for (int batch = 0; batch < 20; ++batch) {
    trace.copied_in(kRows);
    trace.launched("model");
    trace.copied_out(4096);
  }
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(AuditImplicit, ReadInEachIterationFeedsTheNextLaunch) {
  HandMadeTrace trace;
  for (int i = 0; i < 20; ++i) {
    trace.launched("relax");
    trace.copied_out(4);
  }
  EXPECT_EQ(found_in(trace.report()), Found({"HIGH copy_feeds_device_work"}));
}

TEST(AuditImplicit, MarkedMaterializationIsABoundary) {
  HandMadeTrace trace;
  for (int i = 0; i < 20; ++i) {
    trace.launched("query");
    trace.copied_out(kRows, Purpose::Materialize);
  }
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(AuditImplicit, WaitInEachIterationIsFoundAndOneAtTheEndOfAPhaseIsNot) {
  HandMadeTrace loop;
  for (int i = 0; i < 5; ++i) {
    loop.launched("step");
    loop.synchronized();
  }
  EXPECT_EQ(found_in(loop.report()), Found({"HIGH sync_between_launches"}));
  HandMadeTrace phases;
  for (const char* phase : {"warm", "load", "run", "check"}) {
    phases.launched(phase);
    phases.synchronized();
  }
  EXPECT_EQ(found_in(phases.report()), Found());
}

TEST(AuditImplicit, TinyLaunchBetweenLargeOnesIsNotABatch) {
  HandMadeTrace trace;
  for (int i = 0; i < 40; ++i) {
    trace.launched("scan", 4096);
    trace.launched("finish", 1);
  }
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(AuditImplicit, ReadsAfterDeclaredOperationsAreBoundaries) {
  HandMadeTrace trace;
  for (int i = 0; i < 10; ++i) {
    trace.begin("auto", "cuda");
    trace.launched("join");
    trace.dispatched("cuda");
    trace.synchronized();
    for (int value = 0; value < 2; ++value) trace.copied_out(8);
  }
  const audit::Report report = trace.report();
  EXPECT_EQ(found_in(report), Found());
  EXPECT_EQ(report.counts.total, 10U);
  EXPECT_EQ(report.counts.undeclared, 0U);
}

TEST(AuditImplicit, WaitReadByADeclaredOperationIsNotIdle) {
  HandMadeTrace trace;
  for (int i = 0; i < 5; ++i) {
    trace.launched("prepare");
    trace.synchronized();
    trace.begin("auto", "cuda");
    trace.launched("join");
    trace.copied_out(4096, Purpose::Materialize);
    trace.dispatched("cuda");
  }
  EXPECT_EQ(found_in(trace.report()), Found());
}

TEST(AuditImplicit, DeclaredOperationWithoutNumberIsANamedRun) {
  HandMadeTrace trace;
  trace.work().operation = "my.filter";
  trace.work().rows = 500;
  for (int i = 0; i < 20; ++i) planted_iteration(trace);
  const audit::Report report = trace.report();
  ASSERT_FALSE(report.findings.empty());
  EXPECT_EQ(report.findings.front().operation, "my.filter");
  EXPECT_EQ(report.counts.total, 1U);
  EXPECT_EQ(report.counts.on_device, 1U);
  EXPECT_EQ(report.counts.undeclared, 0U);
  EXPECT_EQ(report.rows, 500U);
}

TEST(AuditImplicit, StreamsOfOneThreadAreSeparateOperations) {
  HandMadeTrace trace;
  for (int i = 0; i < 2; ++i) {
    for (const std::uint64_t stream : {0x10, 0x20, 0x30}) trace.launched("step", 1000, 256, stream);
    for (const std::uint64_t stream : {0x10, 0x20, 0x30}) trace.synchronized(stream);
  }
  EXPECT_EQ(found_in(trace.report()), Found()) << "the streams overlap, and no wait is repeated on one of them";
  EXPECT_EQ(trace.report().counts.undeclared, 3U);
}

TEST(AuditImplicit, WaitForACompilerIsAlwaysReported) {
  HandMadeTrace trace;
  Event waited = trace.made(Event::Kind::BlockingCompile);
  waited.unit = "step.cu";
  trace.emit(waited);
  trace.launched("step");
  EXPECT_EQ(found_in(trace.report()), Found({"MEDIUM blocking_compile"}));
  HandMadeTrace background;
  background.emit(background.made(Event::Kind::Compiled));
  background.launched("step");
  EXPECT_EQ(found_in(background.report()), Found()) << "a compile that nothing waited for";
}

}  // namespace
}  // namespace kiln::test
