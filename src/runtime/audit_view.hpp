#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/words.hpp"
#include "runtime/audit.hpp"

// What the rules of an audit look at: a trace, cut into runs of operations. Private to the audit.
namespace kiln::audit {

using Events = std::vector<const RecordedEvent*>;  ///< by id

/// One run of an operation.
struct Run {
  std::uint64_t number = 0;
  std::uint64_t workflow = 0;
  std::string operation;
  std::uint64_t rows = 0;
  Residency residency = Residency::Unknown;
  const RecordedEvent* decided = nullptr;     ///< null where the trace does not have it
  const RecordedEvent* dispatched = nullptr;  ///< null where it did not end within the trace
  bool fell_back = false;                     ///< somebody said that it does not run where it would have
  Events events;                              ///< all that was told in it
  /// Kernels that were put on a stream from its first event to its last, of operations that it called too.
  std::uint64_t launches = 0;

  /// What carried it out in the end, in the words of the trace; empty where it does not say.
  std::string selected() const;
  /// What was to carry it out when it began, likewise.
  std::string chosen() const;
};

struct View {
  explicit View(const Trace& trace);

  const Trace& trace;
  std::vector<Run> runs;
  std::vector<Events> paths;                     ///< what ran by one decision on one thread, its runs together
  std::map<std::string, std::uint64_t> runs_of;  ///< of each operation
};

/// opencl, cuda and whatever may come; not the processor, however it is called.
bool is_device(std::string_view selected);

bool is(const RecordedEvent& event, Event::Kind kind);
/// A launch that the driver took.
bool is_launch(const RecordedEvent& event);
bool is_allocation(const RecordedEvent& event);
bool is_copy_in(const RecordedEvent& event);
bool is_copy_out(const RecordedEvent& event);
inline const std::string& kernel_of(const RecordedEvent& event) { return event.event.message; }

/// Where findings are put together: of one rule, operation and subject there is one.
class Findings {
 public:
  explicit Findings(const View& view) : view_(view) {}

  /// `text` is kept of the first. The operation, the stage and the run are those of the first event, where there is
  /// one.
  void add(const Rule& rule, const Events& evidence, std::string text, std::string subject = {});
  std::vector<Finding> take();

 private:
  const View& view_;
  std::vector<Finding> findings_;
  std::map<std::tuple<const Rule*, std::string, std::string>, std::size_t> place_;
};

// In the order of U2's questions; each is a small function over the view, in audit_rules_*.cpp.
void check_place(const View& view, Findings& to);     ///< did it run on the device, and stay there
void check_flow(const View& view, Findings& to);      ///< does the host wait, or drive
void check_launches(const View& view, Findings& to);  ///< are launches right, and is the evidence

// How the report is put together from what was found, in audit_report.cpp.
void count_run(const Run& run, DispatchCounts& counts);
void describe(const View& view, Report& report);
void answer(Report& report);

}  // namespace kiln::audit
