// SPDX-License-Identifier: Apache-2.0
// Audits a real pipeline without faults, and with all of them at once. It runs on PoCL, which executes kernels, through
// the session, the runtime, the trace file and its reader. audit_corpus_test.cpp has each fault alone.
#include "analysis/audit_fixture.hpp"

namespace kiln::test {
namespace {

using audit::Report;

TEST_F(AuditPipeline, CleanPipelineHasNoFindings) {
  const std::string file = directory_->path("trace.json");
  run(runtime_of(open(file)), {});
  const Report report = audit::run_audit(audit::read_trace(file).value());
  EXPECT_EQ(found_in(report), std::vector<std::string>());
  EXPECT_EQ(report.stayed, Report::StayedOnDevice::Yes);
  EXPECT_EQ(report.counts.total, 1U);
  EXPECT_EQ(report.counts.on_device + report.counts.on_cpu_device, 1U);
  EXPECT_EQ(report.rows, 20'000U);
  ASSERT_EQ(report.devices.size(), 1U);
  EXPECT_FALSE(report.devices.front().empty());
  ASSERT_EQ(report.selections.size(), 1U);
  EXPECT_EQ(report.selections.front().requested, "gpu");
  EXPECT_EQ(report.selections.front().selected, "opencl");
  EXPECT_EQ(report.longest.size(), 3U);
  EXPECT_FALSE(report.command.empty());
  EXPECT_FALSE(report.date.empty());
}

TEST_F(AuditPipeline, TracingWaitsAreNotFindings) {
  trace_->begin();
  run(runtime_of(*session_, true), {});
  const Report report = trace_->report();
  EXPECT_EQ(found_in(report), std::vector<std::string>());
  EXPECT_TRUE(report.stages_synchronized);
}

TEST_F(AuditPipeline, LaunchOutsideAnOperationIsNotAFinding) {
  const Report report = report_of({Fault::LaunchOutside});
  EXPECT_EQ(found_in(report), std::vector<std::string>());
  EXPECT_EQ(report.counts.undeclared, 1U);
}

// The program of issue 28, which declares nothing, and its repair.
TEST_F(AuditPipeline, ProgramWithoutOperationsHasItsFindings) {
  const Stream stream = session_->stream(kiln::Backend::OpenCl).value();
  const std::vector<std::uint8_t> start(4U << 20);
  std::vector<std::uint8_t> rows = start;
  trace_->begin();
  {
    const Buffer data = stream.copy_of(rows).value();
    for (int turn = 0; turn < 40; ++turn) {
      const Buffer scratch = stream.allocate(4U << 20).value();
      Pipeline::launch(*session_, stream, "touch", 64, 0, data);
      stream.synchronize().value();
      stream.download(rows.data(), data, rows.size()).value();
      stream.upload(data, rows.data(), rows.size()).value();
    }
  }
  const Report planted = trace_->report();
  EXPECT_EQ(found_in(planted), std::vector<std::string>({"BLOCKING host_step", "HIGH sync_per_item",
                                                         "HIGH many_tiny_launches", "MEDIUM allocation_in_loop"}));
  EXPECT_EQ(planted.cpu_shaped, audit::Answer::Supported);
  EXPECT_EQ(planted.waits.caller.count, 40U);
  EXPECT_EQ(planted.cause.rfind("thread 1, stream 1: rows leave the device", 0), 0U) << planted.cause;
  EXPECT_EQ(planted.change.rfind("Write that step as a kernel", 0), 0U) << planted.change;
  trace_->begin();
  {
    const Buffer data = stream.copy_of(start).value();
    for (int turn = 0; turn < 40; ++turn) Pipeline::launch(*session_, stream, "touch", 1 << 20, 0, data);
    stream.download(rows.data(), data, rows.size()).value();
  }
  const Report repaired = trace_->report();
  EXPECT_EQ(found_in(repaired), std::vector<std::string>());
  EXPECT_TRUE(repaired.clean());
  EXPECT_EQ(repaired.cpu_shaped, audit::Answer::Disproved);
}

TEST_F(AuditPipeline, CleanRunOnDriverDoubleHasNoFindings) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  const Report report = report_on_double({});
  EXPECT_EQ(found_in(report), std::vector<std::string>());
  EXPECT_EQ(report.counts.on_device, 1U);
}

TEST_F(AuditPipeline, AllFaultsTogetherAreFound) {
  trace_->begin();
  run(runtime_of(*session_),
      {Fault::WaitBetweenStages, Fault::HiddenCopy, Fault::HostStep, Fault::SmallReads, Fault::LaunchPerGroup,
       Fault::AllocationInLoop, Fault::TinyBlock, Fault::BlockingCompile, Fault::DecideAgain, Fault::UnmarkedResult,
       Fault::ResizedOutput, Fault::BufferPerRow, Fault::BinsOfHost, Fault::StreamsInTurn});
  run(runtime_of(*session_), {Fault::SilentFallback});
  const Report report = trace_->report();
  std::vector<std::string> wanted;
  for (const AuditedProgram& each : planted_on_pocl()) wanted.push_back(each.found);
  std::vector<std::string> found = found_in(report);
  std::sort(wanted.begin(), wanted.end());
  std::sort(found.begin(), found.end());
  ASSERT_EQ(found, wanted);
  EXPECT_STREQ(report.findings.front().rule->name, "silent_fallback") << "findings of an earlier check rank first";
  EXPECT_STREQ(report.findings[2].rule->name, "host_step");
  EXPECT_EQ(report.stayed, Report::StayedOnDevice::No);
  EXPECT_EQ(report.worst(), audit::Severity::Blocking);
}

}  // namespace
}  // namespace kiln::test
