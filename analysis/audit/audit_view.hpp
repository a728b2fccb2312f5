// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <kiln/runtime/events.hpp>

#include "analysis/audit/audit.hpp"
#include "base/format.hpp"

// The view of a trace that the audit rules use: the trace divided into runs of operations. Private to the audit.
namespace kiln::audit {

using Events = std::vector<const RecordedEvent*>;  ///< by id

/// One run of an operation, or all work of a thread that belongs to no numbered run: see `number`.
struct Run {
  /// Number of the run. 0 for work without a number: an operation that the program declared without one, or an implicit
  /// operation. Such a run has no known end, so that the rules ask for a repeated pattern (`kLoop`).
  std::uint64_t number = 0;
  /// True if the program declared no operation for this work. There is one such run for each thread and stream, and one
  /// for each workflow and thread.
  bool implicit = false;
  std::uint64_t workflow = 0;
  std::string operation;
  std::uint64_t rows = 0;
  Residency residency = Residency::Unknown;
  const RecordedEvent* decided = nullptr;     ///< null if it is not in the trace
  const RecordedEvent* dispatched = nullptr;  ///< null if the run did not end within the trace
  bool fell_back = false;                     ///< true if a fallback was reported for this run
  Events events;                              ///< all events of the run
  /// For a run without a number: ascending indexes in `events` before which the thread worked for another operation.
  std::vector<std::size_t> breaks;
  /// Number of kernels launched between the first and the last event, including operations that it called.
  std::uint64_t launches = 0;

  /// Returns the backend that ran the operation, as named in the trace; empty if unknown.
  std::string selected() const;
  /// Returns the backend that was selected when the run began; empty if unknown.
  std::string chosen() const;
};

struct View {
  explicit View(const Trace& trace);

  const Trace& trace;
  std::vector<Run> runs;
  /// Events of all runs of one decision on one thread; for a run without a number, its events between two breaks.
  std::vector<Events> paths;
  std::map<std::string, std::uint64_t> runs_of;  ///< number of runs per operation

  /// Returns the run that an event of the trace belongs to, or null.
  const Run* run_of(const RecordedEvent& event) const;
  /// Returns the name of the operation of an event, also of an implicit one; empty if it belongs to none.
  const std::string& operation_of(const RecordedEvent& event) const;

 private:
  std::vector<std::uint32_t> run_index_;  ///< by position of the event in the trace
};

/// Repetitions that make a pattern a loop. A run without a number has no known end: a read at the end of a phase looks
/// like a read in the middle. The rules report a pattern in such a run only if it was repeated with the same kernels
/// and sizes.
inline constexpr std::size_t kLoop = 3;
/// Returns true if the path is of a run without a number and without a workflow.
inline bool is_unbounded(const Events& path) {
  return path.front()->event.context.dispatch == 0 && path.front()->event.context.workflow == 0;
}

/// Maximum bytes of a copy that is a single value: a size of an allocation, or a parameter.
inline constexpr std::uint64_t kScalar = 16;

/// Returns true for any backend that is not the CPU or the host.
bool is_device(std::string_view selected);

inline bool is(const RecordedEvent& event, Event::Kind kind) { return event.event.kind == kind; }
inline bool is(const RecordedEvent& event, const EventType& type) { return event.event.is(type); }
/// Returns true for a launch that the driver accepted.
bool is_launch(const RecordedEvent& event);
bool is_allocation(const RecordedEvent& event);
bool is_copy_in(const RecordedEvent& event);
bool is_copy_out(const RecordedEvent& event);
inline const std::string& kernel_of(const RecordedEvent& event) { return event.event.message; }

/// Returns true for a launch, a copy, a wait, an allocation, a release or a trim.
bool is_work(const RecordedEvent& event);
/// Adds the runs of work without a number, in audit_implicit.cpp. `run_index` has the run of each event; the function
/// sets it for the events that it assigns.
void add_unnumbered_runs(const Trace& trace, std::vector<Run>& runs, std::vector<std::uint32_t>& run_index);
inline constexpr std::uint32_t kNoRun = ~0U;

/// A collection of findings that merges those of the same rule, operation and subject. Not thread-safe.
class Findings {
 public:
  explicit Findings(const View& view) : view_(view), uses_(view.trace.events.size(), ReadUse::Terminal) {}

  /// Adds a finding. Keeps the `text` of the first one. The operation, the stage and the run are those of the first
  /// event of `evidence`, if any.
  void add(const Rule& rule, const Events& evidence, std::string text, std::string subject = {});
  /// Notes that a read sizes an allocation.
  void add_fence(const RecordedEvent& read);
  /// Notes that it is unclear whether more work depends on the reads among these events.
  void add_unclear(const Events& events);
  std::vector<Finding> take();
  /// Returns all reads from the device by use. The reads in the evidence of a finding about residency are defects.
  std::vector<HostReads> reads() const;

 private:
  ReadUse& use_of(const RecordedEvent& event) {
    return uses_[static_cast<std::size_t>(&event - view_.trace.events.data())];
  }

  const View& view_;
  std::vector<ReadUse> uses_;  // by position of the event in the trace
  std::vector<Finding> findings_;
  std::map<std::tuple<const Rule*, std::string, std::string>, std::size_t> place_;
};

// The checks, in the order of `Step`; check_residency calls check_round_trips. Each is implemented in an
// audit_rules_*.cpp file.
void check_residency(const View& view, Findings& to);        ///< run and data on the device
void check_round_trips(const View& view, Findings& to);      ///< copies to the host between launches
void check_synchronization(const View& view, Findings& to);  ///< host waits and host-driven batches
void check_launches(const View& view, Findings& to);         ///< launch shapes and trace completeness
void check_streams(const View& view, Findings& to);          ///< several streams in one run
void check_buffers(const View& view, Findings& to);          ///< memory that is allocated piece by piece
void check_host_copies(const View& view, Findings& to);      ///< copies to the host, repeated or unmarked
void check_precision(const View& view, Findings& to);        ///< precision against device and operation

// The rules of each check.
Rules residency_rules();
Rules round_trip_rules();
Rules synchronization_rules();
Rules launch_rules();
Rules stream_rules();
Rules buffer_rules();
Rules host_copy_rules();
Rules precision_rules();

// Build the report from the findings; in audit_report.cpp.
void count_run(const Run& run, DispatchCounts& counts);
void fill_report(const View& view, Report& report);
void summarize_cause(Report& report);
// In audit_evidence.cpp: the waits by owner, the missing evidence and the answer to "CPU-shaped GPU code".
void find_waits(const View& view, Report& report);
void find_missing(const View& view, Report& report);
void judge_shape(Report& report);
// In audit_operations.cpp.
void sum_operations(const View& view, Report& report);
/// The places where an operation can run.
enum class Place : unsigned char { Processor, CpuDevice, Gpu };
Place place_of(const Run& run);

}  // namespace kiln::audit
