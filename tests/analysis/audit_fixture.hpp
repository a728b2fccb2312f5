// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "support/fakes/planted_cuda_faults.hpp"
#include "support/fakes/planted_faults.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/traces.hpp"

namespace kiln::test {

/// A program of the corpus: one with a planted fault, or a clean one.
struct AuditedProgram {
  const char* what;
  const char* how;  ///< PoCL, which runs kernels; driver double, which runs none; by hand
  std::function<audit::Report()> report;
  std::string found;  ///< "HIGH sync_between_launches"; empty for a clean program
};
using AuditedPrograms = std::vector<AuditedProgram>;

// For traces written by hand: a second stream, and the size of a column.
inline constexpr std::uint64_t kOtherStream = 0x80;
inline constexpr std::uint64_t kRowBytes = 80'000;

// Programs whose trace is written by hand; in planted_by_hand.cpp and clean_by_hand.cpp.
AuditedPrograms planted_by_hand();
AuditedPrograms clean_by_hand();

/// Returns a program whose trace `write` emits.
inline AuditedProgram by_hand(const char* what, std::string found, std::function<void(HandMadeTrace&)> write) {
  return {what, "by hand",
          [write = std::move(write)] {
            HandMadeTrace trace;
            write(trace);
            return trace.report();
          },
          std::move(found)};
}

inline Rows some_rows() {
  Rows rows(20'000);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i % 1000) / 1000;
  return rows;
}

/// Records the events from its construction on as a trace. Thread-safe.
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
  audit::Report report() const {
    const MutexLock lock(mutex_);
    return audit::run_audit(audit::parse_trace(writer_->json()).value());
  }

 private:
  mutable Mutex mutex_;
  std::unique_ptr<TraceWriter> writer_ KILN_GUARDED_BY(mutex_) = std::make_unique<TraceWriter>();
};

/// A fixture that audits runs of a real pipeline. All tests share one session with compiled kernels, because PoCL takes
/// a second to build, also for each block size.
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
    options.allow_cpu_device = true;
    options.devices = {runtime::Backend::OpenCl};
    options.time_stages = time_stages;
    return runtime::Runtime(session, options);
  }
  static runtime::DispatchRequest many_rows() { return {20'000, Residency::Host, runtime::Backend::Cpu}; }
  static void run(runtime::Runtime runtime, const Faults& faults) {
    const Rows rows = some_rows();
    Result<Rows> kept = runtime::run(runtime, kPipeline, many_rows(), rows, faults);
    ASSERT_TRUE(kept.has_value()) << kept.error().message;
    EXPECT_EQ(kept->size(), 9'980U) << "the result is correct in every variant of the pipeline";
    EXPECT_FLOAT_EQ(*std::min_element(kept->begin(), kept->end()), 2 * 0.501F);
    if (faults.count(Fault::LaunchOutside) == 0) return;
    const Stream stream = runtime.session().stream(kiln::Backend::OpenCl).value();
    const Buffer one = stream.copy_of(Rows(1)).value();
    Pipeline::launch(runtime.session(), stream, "touch", 1, 0, one);
  }
  static audit::Report report_of(const Faults& faults) {
    trace_->begin();
    run(runtime_of(*session_), faults);
    return trace_->report();
  }
  static audit::Report report_on_double(const CudaFaults& faults) {
    // The first run compiles, and to wait for a compiler is a finding.
    run_on_double(faults, directory_->path("cache"), [](const Event&) {});
    trace_->begin();
    run_on_double(faults, directory_->path("cache"), [](const Event& event) { trace_->emit(event); });
    return trace_->report();
  }
  static AuditedProgram on_pocl(const char* what, Fault fault, const char* found) {
    return {what, "PoCL", [fault] { return report_of({fault}); }, found};
  }
  /// Returns a program that `run_it` runs on PoCL with the session, without a fault.
  static AuditedProgram clean_on_pocl(const char* what, std::function<void(runtime::Runtime)> run_it) {
    return {what, "PoCL",
            [run_it = std::move(run_it)] {
              trace_->begin();
              run_it(runtime_of(*session_));
              return trace_->report();
            },
            ""};
  }
  static AuditedProgram on_double(const char* what, const CudaFaults& faults, const char* found) {
    return {what, "driver double", [faults] { return report_on_double(faults); }, found};
  }

  static AuditedPrograms planted_on_pocl();
  static AuditedPrograms planted_on_double();
  static AuditedPrograms planted();
  static AuditedPrograms clean_programs();

  static inline std::unique_ptr<TemporaryDirectory> directory_;
  static inline std::unique_ptr<TraceFromNow> trace_;
  static inline std::unique_ptr<Session> session_;
};

}  // namespace kiln::test
