// Audits a real pipeline without faults and with injected faults. It runs on PoCL, which executes kernels, through the
// session, the runtime, the trace file and its reader. Faults that PoCL cannot produce are injected in a run on the
// driver double, which runs no kernel, or written by hand; each row of the table states which.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>

#include "base/mutex.hpp"
#include "support/fakes/planted_cuda_faults.hpp"
#include "support/fakes/planted_faults.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/traces.hpp"

namespace kiln::test {
namespace {

using audit::Report;

Rows some_rows() {
  Rows rows(20'000);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 1000) / 1000;
  return rows;
}

// Records the events from its construction on as a trace.
class TraceFromNow {
 public:
  void begin() {
    const MutexLock lock(mutex_);
    writer_ = std::make_unique<TraceWriter>();
  }
  void emit(const Event& event) {
    const MutexLock lock(mutex_);
    writer_->on_event(event);
  }
  Report report() const {
    const MutexLock lock(mutex_);
    return audit::run_audit(audit::parse_trace(writer_->json()).value());
  }

 private:
  mutable Mutex mutex_;
  std::unique_ptr<TraceWriter> writer_ KILN_GUARDED_BY(mutex_) = std::make_unique<TraceWriter>();
};

// All tests share one session with compiled kernels, because PoCL takes a second to build, also for each block size.
class AuditPipeline : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = std::make_unique<TemporaryDirectory>();
    trace_ = std::make_unique<TraceFromNow>();
    session_ = std::make_unique<Session>(open({}));
  }
  static void TearDownTestSuite() {
    session_.reset();
    directory_.reset();
  }
  static Session open(const std::string& trace_file) {
    SessionOptions options;
    options.settings = {{"cache.dir", directory_->path("cache")}, {"trace", trace_file}};
    options.locked = {"cache.dir", "trace"};
    if (trace_file.empty()) options.on_event = [](const Event& event) { trace_->emit(event); };
    Session session = Session::open(std::move(options)).value();
    // Compile the kernels before the first call, as a program would.
    for (const char* kernel : {"mark", "count", "fill", "scale", "touch", "nudge"}) {
      (void)session.get(pipeline_unit(), kernel, std::chrono::seconds(60)).value();
    }
    return session;
  }
  static runtime::Runtime runtime_of(const Session& session, bool time_stages = false) {
    runtime::RuntimeOptions options;
    options.mode = runtime::Mode::Gpu;
    options.devices = {runtime::Backend::OpenCl};
    options.allow_cpu_device = true;  // PoCL
    options.time_stages = time_stages;
    return runtime::Runtime(session, options);
  }
  static void run(runtime::Runtime runtime, const Faults& faults) {
    const Rows rows = some_rows();
    Result<Rows> kept =
        runtime::run(runtime, kPipeline, {rows.size(), Residency::Host, runtime::Backend::Cpu}, rows, faults);
    ASSERT_TRUE(kept.has_value()) << kept.error().message;
    EXPECT_EQ(kept->size(), 9'980U) << "the result is correct in every variant of the pipeline";
    EXPECT_FLOAT_EQ(*std::min_element(kept->begin(), kept->end()), 2 * 0.501F);
    if (faults.count(Fault::LaunchOutside) == 0) return;
    const Stream stream = runtime.session().stream(kiln::Backend::OpenCl).value();
    const Buffer one = stream.copy_of(Rows(1)).value();
    Pipeline::launch(runtime.session(), stream, "touch", 1, 0, one);
  }
  static Report report_of(const Faults& faults) {
    trace_->begin();
    run(runtime_of(*session_), faults);
    return trace_->report();
  }

  static Report report_on_double(const CudaFaults& faults) {
    trace_->begin();
    run_on_double(faults, directory_->path("cache"), [](const Event& event) { trace_->emit(event); });
    return trace_->report();
  }

  struct Planted;
  static Planted on_pocl(const char* what, Fault fault, const char* found);
  static Planted on_double(const char* what, CudaFault fault, const char* found);
  static std::vector<Planted> planted_on_double();
  static std::vector<Planted> planted_on_pocl();
  static std::vector<Planted> planted_by_hand();

  static inline std::unique_ptr<TemporaryDirectory> directory_;
  static inline std::unique_ptr<TraceFromNow> trace_;
  static inline std::unique_ptr<Session> session_;
};

TEST_F(AuditPipeline, CleanPipelineHasNoFindings) {
  const std::string file = directory_->path("trace.json");
  run(runtime_of(open(file)), {});
  const Report report = audit::run_audit(audit::read_trace(file).value());
  EXPECT_EQ(found_in(report), std::vector<std::string>());
  EXPECT_EQ(report.stayed, Report::StayedOnDevice::Yes);
  EXPECT_EQ(report.counts.total, 1U);
  EXPECT_EQ(report.counts.on_device, 1U);
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

// Two of the four exceptions. The other two, the scalar and the materialization, are in the clean pipeline.
TEST_F(AuditPipeline, TracingWaitsAreNotFindings) {
  trace_->begin();
  run(runtime_of(*session_, true), {});
  const Report report = trace_->report();
  EXPECT_EQ(found_in(report), std::vector<std::string>());
  EXPECT_TRUE(report.stages_synchronized);
}

TEST_F(AuditPipeline, SmallFixedLoopIsNotAFinding) {
  trace_->begin();
  runtime::Runtime runtime = runtime_of(*session_);
  {
    const runtime::Dispatch dispatch =
        runtime::Dispatch::begin(runtime, kPipeline, {20'000, Residency::Host, runtime::Backend::Cpu}).value();
    const Stream stream = session_->stream(kiln::Backend::OpenCl).value();
    const Buffer rows = stream.copy_of(some_rows()).value();
    for (int pass = 0; pass < 8; ++pass) Pipeline::launch(*session_, stream, "touch", 64, 0, rows);
  }
  EXPECT_EQ(found_in(trace_->report()), std::vector<std::string>());
}

TEST_F(AuditPipeline, CleanRunOnDriverDoubleHasNoFindings) {
  if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
  const Report report = report_on_double({});
  EXPECT_EQ(found_in(report), std::vector<std::string>());
  EXPECT_EQ(report.counts.on_device, 1U);
}

// ------------------------------------------------------------------------------------------- injected, one at a time

struct AuditPipeline::Planted {
  const char* what;
  const char* how;  // executed on PoCL, reported by the program, written by hand
  std::function<Report()> report;
  std::string found;
};

AuditPipeline::Planted AuditPipeline::on_pocl(const char* what, Fault fault, const char* found) {
  return {what, "PoCL", [fault] { return report_of({fault}); }, found};
}

Report demoted() {
  HandMadeTrace trace;
  trace.begin("auto", "cpu", Residency::Device);
  trace.dispatched("cpu");
  return trace.report();
}

Report not_selected() {
  HandMadeTrace trace;
  trace.begin("gpu", "cpu");
  trace.dispatched("cpu");
  return trace.report();
}

Report on_managed_memory() {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  Event set = trace.made(runtime::events::kMemoryTierSelected, "the driver has no pools");
  set.requested = "pool";
  set.selected = "managed";
  trace.emit(set);
  trace.launched("first");
  trace.dispatched("cuda");
  return trace.report();
}

Report cut_off() {
  HandMadeTrace trace(TraceWriter::Options{.max_events = 2});
  trace.begin("auto", "cuda");
  for (int i = 0; i < 3; ++i) trace.launched("first");
  trace.dispatched("cuda");
  return trace.report();
}

std::vector<AuditPipeline::Planted> AuditPipeline::planted_on_pocl() {
  return {
      on_pocl("waits between stages", Fault::WaitBetweenStages, "HIGH sync_between_launches"),
      on_pocl("a hidden copy to the host", Fault::HiddenCopy, "HIGH copy_feeds_device_work"),
      on_pocl("a step that the host computes", Fault::HostStep, "BLOCKING host_step"),
      on_pocl("values that are read one by one", Fault::SmallReads, "MEDIUM repeated_small_reads"),
      on_pocl("a launch for each group", Fault::LaunchPerGroup, "HIGH many_tiny_launches"),
      on_pocl("memory allocated in a loop", Fault::AllocationInLoop, "MEDIUM allocation_in_loop"),
      on_pocl("a tiny fixed block", Fault::TinyBlock, "LOW small_fixed_block"),
      on_pocl("a caller waits for a compile", Fault::BlockingCompile, "MEDIUM blocking_compile"),
      on_pocl("a fallback that is not reported", Fault::SilentFallback, "BLOCKING silent_fallback"),
      on_pocl("a decision in the middle", Fault::DecideAgain, "MEDIUM repeated_decision"),
      on_pocl("a launch of no operation", Fault::LaunchOutside, "LOW launches_without_operation"),
  };
}

AuditPipeline::Planted AuditPipeline::on_double(const char* what, CudaFault fault, const char* found) {
  return {what, "driver double", [fault] { return report_on_double({fault}); }, found};
}

std::vector<AuditPipeline::Planted> AuditPipeline::planted_on_double() {
  return {
      on_double("a wrapper waits for the default stream", CudaFault::WaitForDefaultStream, "HIGH null_stream_sync"),
      on_double("a pool trimmed in a loop", CudaFault::TrimInLoop, "HIGH trim_in_loop"),
      on_double("plain memory for a pool", CudaFault::PlainMemory, "MEDIUM memory_not_pooled"),
  };
}

// kiln::runtime does not produce the first two; programs with their own dispatch can.
std::vector<AuditPipeline::Planted> AuditPipeline::planted_by_hand() {
  return {
      {"rows on a device, CPU selected", "by hand", demoted, "BLOCKING input_demoted"},
      {"gpu requested, CPU selected", "by hand", not_selected, "BLOCKING requested_not_selected"},
      {"managed memory for a pool", "by hand", on_managed_memory, "MEDIUM memory_not_pooled"},
      {"a trace that was full", "by hand", cut_off, "LOW incomplete_trace"},
  };
}

TEST_F(AuditPipeline, EachInjectedFaultIsFoundAlone) {
  std::vector<Planted> all = planted_on_pocl();
  for (Planted& each : planted_by_hand()) all.push_back(std::move(each));
  if (!toolkit_nvrtc().empty()) {
    for (Planted& each : planted_on_double()) all.push_back(std::move(each));
  }
  std::size_t found = 0;
  std::size_t besides = 0;
  for (const Planted& each : all) {
    const std::vector<std::string> in = found_in(each.report());
    const auto same = static_cast<std::size_t>(std::count(in.begin(), in.end(), each.found));
    EXPECT_EQ(in, std::vector<std::string>({each.found})) << each.what;
    found += same != 0 ? 1 : 0;
    besides += in.size() - same;
    std::printf("  %-40s %-36s %s\n", each.what, each.how, each.found.c_str());
  }
  std::printf("injected %zu, found %zu, unexpected %zu\n", all.size(), found, besides);
  EXPECT_GE(all.size(), 12U);
}

TEST_F(AuditPipeline, AllFaultsTogetherAreFound) {
  trace_->begin();
  run(runtime_of(*session_),
      {Fault::WaitBetweenStages, Fault::HiddenCopy, Fault::HostStep, Fault::SmallReads, Fault::LaunchPerGroup,
       Fault::AllocationInLoop, Fault::TinyBlock, Fault::BlockingCompile, Fault::DecideAgain, Fault::LaunchOutside});
  run(runtime_of(*session_), {Fault::SilentFallback});
  const Report report = trace_->report();
  std::vector<std::string> wanted;
  for (const Planted& each : planted_on_pocl()) wanted.push_back(each.found);
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
