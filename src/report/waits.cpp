// Who stood still, for how long.
#include <algorithm>
#include <map>

#include "report/model.hpp"

namespace kiln::report {
namespace {

// Waiting for somebody else is a wait wherever it happens. The rest is kiln's ordinary work, and a wait only where a
// thread of the program does it.
bool is_wait(Event::Kind kind, bool background) {
  switch (kind) {
    case Event::Kind::HotCompile:
    case Event::Kind::Waited:
    case Event::Kind::LeaseWaited:
    case Event::Kind::Synchronised: return true;
    case Event::Kind::Hit:
    case Event::Kind::Loaded:
    case Event::Kind::Copied: return !background;
    default: return false;
  }
}

std::string reason_of(const Event& event) {
  switch (event.kind) {
    case Event::Kind::HotCompile: return event.message;
    case Event::Kind::Waited: return "another process was compiling it";
    case Event::Kind::LeaseWaited:
      return "another host was compiling it" + (event.selected.empty() ? "" : "; it ended: " + event.selected);
    case Event::Kind::Synchronised: return event.message.empty() ? "for the stream to be done" : event.message;
    case Event::Kind::Hit: return "the " + event.origin + " tier was asked";
    case Event::Kind::Loaded: return "the driver took the artifact";
    case Event::Kind::Copied: return counted(event.bytes, "byte ", "bytes ") + event.message;
    default: return event.message;
  }
}

}  // namespace

std::vector<Wait> waits_of(const audit::Trace& trace) {
  std::vector<Wait> waits;
  for (const audit::RecordedEvent& event : trace.events) {
    const bool background = is_background(trace, event.thread);
    if (!is_wait(event.event.kind, background) || !(event.event.ms > 0)) continue;
    Wait wait;
    wait.event = event.id;
    wait.kind = event.event.kind;
    wait.thread = event.thread;
    wait.who = thread_name(trace, event.thread);
    wait.background = background;
    wait.unit = subject_of(event.event);
    wait.start_ms = event.start_ms;
    wait.ms = event.event.ms;
    wait.why = reason_of(event.event);
    waits.push_back(std::move(wait));
  }
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.ms > b.ms; });
  return waits;
}

double stood_still(const std::vector<Wait>& waits) {
  std::map<std::uint64_t, std::vector<std::pair<double, double>>> spans;
  for (const Wait& wait : waits) {
    if (!wait.background) spans[wait.thread].emplace_back(wait.start_ms, wait.start_ms + wait.ms);
  }
  double total = 0;
  for (auto& [thread, of_thread] : spans) {
    std::sort(of_thread.begin(), of_thread.end());
    double until = 0;
    for (const auto& [start, end] : of_thread) {
      total += std::max(0.0, end - std::max(start, until));
      until = std::max(until, end);
    }
  }
  return total;
}

}  // namespace kiln::report
