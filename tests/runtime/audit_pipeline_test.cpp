// The audit of a real pipeline, clean and with faults planted in it: run on PoCL, which really executes, through the
// session, the runtime, the trace file and its reader. Faults that PoCL cannot have are made by hand, and say so.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>

#include "base/mutex.hpp"
#include "support/planted_faults.hpp"
#include "support/temporary_directory.hpp"
#include "support/traces.hpp"

namespace kiln::test {
namespace {

using audit::Report;

Rows some_rows() {
  Rows rows(20'000);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 1000) / 1000;
  return rows;
}

// What is told from one moment on, as a trace.
class TraceFromNow {
 public:
  void begin() {
    const MutexLock lock(mutex_);
    writer_ = std::make_unique<TraceWriter>();
  }
  void tell(const Event& event) {
    const MutexLock lock(mutex_);
    writer_->tell(event);
  }
  Report report() const {
    const MutexLock lock(mutex_);
    return audit::examine(audit::parse_trace(writer_->json()).value());
  }

 private:
  mutable Mutex mutex_;
  std::unique_ptr<TraceWriter> writer_ KILN_GUARDED_BY(mutex_) = std::make_unique<TraceWriter>();
};

// One session for all, which has everything warm: PoCL builds for a second, and again for each size of a block.
class AuditPipeline : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryDirectory>();
    trace_ = std::make_unique<TraceFromNow>();
    session_ = std::make_unique<Session>(open({}));
  }
  static void TearDownTestSuite() {
    session_.reset();
    folder_.reset();
  }
  static Session open(const std::string& trace_file) {
    SessionOptions options;
    options.settings = {{"cache.dir", folder_->path("cache")}, {"trace", trace_file}};
    options.locked = {"cache.dir", "trace"};
    if (trace_file.empty()) options.on_event = [](const Event& event) { trace_->tell(event); };
    Session session = Session::open(std::move(options)).value();
    // What a program does before the first call that somebody waits for.
    for (const char* kernel : {"mark", "count", "fill", "scale", "touch", "nudge"}) {
      (void)session.get(pipeline_unit(), kernel, std::chrono::seconds(60)).value();
    }
    return session;
  }
  static runtime::Runtime runtime_of(const Session& session, bool time_stages = false) {
    runtime::RuntimeOptions options;
    options.mode = runtime::Mode::Gpu;
    options.devices = {runtime::Backend::OpenCl};
    options.time_stages = time_stages;
    return runtime::Runtime(session, options);
  }
  static void run(runtime::Runtime runtime, const Faults& faults) {
    const Rows rows = some_rows();
    Result<Rows> kept =
        runtime::run(runtime, kPipeline, {rows.size(), Residency::Host, runtime::Backend::Cpu}, rows, faults);
    ASSERT_TRUE(kept.ok()) << kept.error().message;
    EXPECT_EQ(kept->size(), 9'980U) << "whatever it is like, it is right";
    EXPECT_FLOAT_EQ(*std::min_element(kept->begin(), kept->end()), 2 * 0.501F);
    if (faults.count(Fault::LaunchOutside) == 0) return;
    const Stream stream = runtime.session().stream("opencl").value();
    const Buffer one = stream.copy_of(Rows(1)).value();
    Pipeline::launch(runtime.session(), stream, "touch", 1, 0, one);
  }
  static Report report_of(const Faults& faults) {
    trace_->begin();
    run(runtime_of(*session_), faults);
    return trace_->report();
  }

  struct Planted;
  static Planted on_pocl(const char* what, Fault fault, const char* found);
  static std::vector<Planted> planted_on_pocl();
  static std::vector<Planted> planted_by_hand();

  static inline std::unique_ptr<TemporaryDirectory> folder_;
  static inline std::unique_ptr<TraceFromNow> trace_;
  static inline std::unique_ptr<Session> session_;
};

TEST_F(AuditPipeline, TheCleanPipelineIsCleanInItsTraceFile) {
  const std::string file = folder_->path("trace.json");
  run(runtime_of(open(file)), {});
  const Report report = audit::examine(audit::read_trace(file).value());
  EXPECT_EQ(found_in(report), std::vector<std::string>());
  EXPECT_EQ(report.stayed, Report::Stayed::Yes);
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

// U4's four: the scalar and the materialisation are in the clean pipeline itself.
TEST_F(AuditPipeline, WaitsThatOnlyTheTraceMakesAreNoFindings) {
  trace_->begin();
  run(runtime_of(*session_, true), {});
  const Report report = trace_->report();
  EXPECT_EQ(found_in(report), std::vector<std::string>());
  EXPECT_TRUE(report.stages_waited);
}

TEST_F(AuditPipeline, ALoopOverASmallFixedSetIsNone) {
  trace_->begin();
  runtime::Runtime runtime = runtime_of(*session_);
  {
    const runtime::Dispatch dispatch =
        runtime::Dispatch::begin(runtime, kPipeline, {20'000, Residency::Host, runtime::Backend::Cpu}).value();
    const Stream stream = session_->stream("opencl").value();
    const Buffer rows = stream.copy_of(some_rows()).value();
    for (int pass = 0; pass < 8; ++pass) Pipeline::launch(*session_, stream, "touch", 64, 0, rows);
  }
  EXPECT_EQ(found_in(trace_->report()), std::vector<std::string>());
}

// ------------------------------------------------------------------------------------------- planted, each alone

struct AuditPipeline::Planted {
  const char* what;
  const char* how;  // executed on PoCL, told by the program, made by hand
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

Report on_another_memory(const char* selected) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  Event set = trace.made(Event::Kind::MemorySet, "the driver has no pools");
  set.requested = "pool";
  set.selected = selected;
  trace.tell(set);
  trace.launched("first");
  trace.dispatched("cuda");
  return trace.report();
}

Report trimmed_in_a_loop() {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  for (int turn = 0; turn < 3; ++turn) {
    trace.launched("first");
    trace.tell(trace.made(Event::Kind::MemoryTrimmed));
  }
  trace.dispatched("cuda");
  return trace.report();
}

Report cut_off() {
  HandMadeTrace trace(TraceWriter::Options{.most_events = 2});
  trace.begin("auto", "cuda");
  for (int i = 0; i < 3; ++i) trace.launched("first");
  trace.dispatched("cuda");
  return trace.report();
}

std::vector<AuditPipeline::Planted> AuditPipeline::planted_on_pocl() {
  return {
      on_pocl("waits between stages", Fault::WaitBetweenStages, "HIGH sync_between_launches"),
      {"a wrapper waits for the default stream", "PoCL, the wait told by the program",
       [] { return report_of({Fault::WaitForDefaultStream}); }, "HIGH null_stream_sync"},
      on_pocl("a copy to the host that nobody sees", Fault::HiddenCopy, "HIGH copy_feeds_device_work"),
      on_pocl("a step that the host computes", Fault::HostStep, "BLOCKING host_step"),
      on_pocl("values that are read one by one", Fault::SmallReads, "MEDIUM repeated_small_reads"),
      on_pocl("a launch for each group", Fault::LaunchPerGroup, "HIGH many_tiny_launches"),
      on_pocl("memory allocated in a loop", Fault::AllocationInLoop, "MEDIUM allocation_in_loop"),
      on_pocl("a tiny fixed block", Fault::TinyBlock, "LOW small_fixed_block"),
      on_pocl("a compile on the hot path", Fault::HotCompile, "MEDIUM hot_compile"),
      on_pocl("a fallback that is not told", Fault::SilentFallback, "BLOCKING silent_fallback"),
      on_pocl("a decision in the middle", Fault::DecideAgain, "MEDIUM decided_again"),
      on_pocl("a launch of no operation", Fault::LaunchOutside, "LOW launches_without_operation"),
  };
}

// kiln::runtime refuses to do the first two; programs with a dispatch of their own do them.
std::vector<AuditPipeline::Planted> AuditPipeline::planted_by_hand() {
  return {
      {"rows on a device, the processor chosen", "by hand", demoted, "BLOCKING input_demoted"},
      {"gpu asked for, the processor chosen", "by hand", not_selected, "BLOCKING requested_not_selected"},
      {"managed memory for a pool", "by hand", [] { return on_another_memory("managed"); }, "MEDIUM memory_not_pooled"},
      {"plain memory for a pool", "by hand", [] { return on_another_memory("plain"); }, "MEDIUM memory_not_pooled"},
      {"a pool trimmed in a loop", "by hand", trimmed_in_a_loop, "HIGH trim_in_loop"},
      {"a trace that was full", "by hand", cut_off, "LOW evidence_not_whole"},
  };
}

TEST_F(AuditPipeline, EachPlantedFaultIsFoundAndNothingBesides) {
  std::vector<Planted> all = planted_on_pocl();
  for (Planted& each : planted_by_hand()) all.push_back(std::move(each));
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
  std::printf("planted %zu, found %zu, besides %zu\n", all.size(), found, besides);
  EXPECT_GE(all.size(), 12U);
}

TEST_F(AuditPipeline, AllFaultsAtOnceAreAllFound) {
  trace_->begin();
  run(runtime_of(*session_), {Fault::WaitBetweenStages, Fault::WaitForDefaultStream, Fault::HiddenCopy, Fault::HostStep,
                              Fault::SmallReads, Fault::LaunchPerGroup, Fault::AllocationInLoop, Fault::TinyBlock,
                              Fault::HotCompile, Fault::DecideAgain, Fault::LaunchOutside});
  run(runtime_of(*session_), {Fault::SilentFallback});
  const Report report = trace_->report();
  std::vector<std::string> wanted;
  for (const Planted& each : planted_on_pocl()) wanted.push_back(each.found);
  std::vector<std::string> found = found_in(report);
  std::sort(wanted.begin(), wanted.end());
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, wanted);
  EXPECT_STREQ(report.findings.front().rule->name, "silent_fallback") << "an early question ranks first";
  EXPECT_STREQ(report.findings[2].rule->name, "host_step");
  EXPECT_EQ(report.stayed, Report::Stayed::No);
  EXPECT_EQ(report.worst(), audit::Severity::Blocking);
}

}  // namespace
}  // namespace kiln::test
