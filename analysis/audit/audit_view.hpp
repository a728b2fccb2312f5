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

/// One run of an operation.
struct Run {
  std::uint64_t number = 0;
  std::uint64_t workflow = 0;
  std::string operation;
  std::uint64_t rows = 0;
  Residency residency = Residency::Unknown;
  const RecordedEvent* decided = nullptr;     ///< null if it is not in the trace
  const RecordedEvent* dispatched = nullptr;  ///< null if the run did not end within the trace
  bool fell_back = false;                     ///< true if a fallback was reported for this run
  Events events;                              ///< all events of the run
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
  std::vector<Events> paths;                     ///< events of all runs of one decision on one thread
  std::map<std::string, std::uint64_t> runs_of;  ///< number of runs per operation
};

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

/// A collection of findings that merges those of the same rule, operation and subject. Not thread-safe.
class Findings {
 public:
  explicit Findings(const View& view) : view_(view) {}

  /// Adds a finding. Keeps the `text` of the first one. The operation, the stage and the run are those of the first
  /// event of `evidence`, if any.
  void add(const Rule& rule, const Events& evidence, std::string text, std::string subject = {});
  std::vector<Finding> take();

 private:
  const View& view_;
  std::vector<Finding> findings_;
  std::map<std::tuple<const Rule*, std::string, std::string>, std::size_t> place_;
};

// The checks, in the order of `Step`. Each is implemented in an audit_rules_*.cpp file.
void check_residency(const View& view, Findings& to);        ///< run and data on the device
void check_synchronization(const View& view, Findings& to);  ///< host waits and host-driven batches
void check_launches(const View& view, Findings& to);         ///< launch shapes and trace completeness
void check_streams(const View& view, Findings& to);          ///< several streams in one run
void check_buffers(const View& view, Findings& to);          ///< memory that is allocated piece by piece
void check_precision(const View& view, Findings& to);        ///< precision against device and operation

// The rules of each check.
Rules residency_rules();
Rules synchronization_rules();
Rules launch_rules();
Rules stream_rules();
Rules buffer_rules();
Rules precision_rules();

// Build the report from the findings; in audit_report.cpp.
void count_run(const Run& run, DispatchCounts& counts);
void fill_report(const View& view, Report& report);
void summarize_cause(Report& report);

}  // namespace kiln::audit
