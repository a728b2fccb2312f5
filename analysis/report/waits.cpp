// SPDX-License-Identifier: Apache-2.0
// Finds the waits in a trace and their durations.
#include <algorithm>
#include <map>

#include "analysis/report/model.hpp"

namespace kiln::report {
namespace {

// Waiting for a compile, a process, a host or a stream is a wait on every thread. Other events are kiln's normal work
// and count as a wait only on a thread of the program.
bool is_wait(Event::Kind kind, bool background) {
  switch (kind) {
    case Event::Kind::BlockingCompile:
    case Event::Kind::ClaimWaited:
    case Event::Kind::LeaseWaited:
    case Event::Kind::Synchronized: return true;
    case Event::Kind::Hit:
    case Event::Kind::Loaded:
    case Event::Kind::Copied: return !background;
    default: return false;
  }
}

std::string reason_of(const Event& event) {
  switch (event.kind) {
    case Event::Kind::BlockingCompile: return event.message;
    case Event::Kind::ClaimWaited: return "another process was compiling it";
    case Event::Kind::LeaseWaited:
      return "another host was compiling it" + (event.selected.empty() ? "" : "; outcome: " + event.selected);
    case Event::Kind::Synchronized: return event.message.empty() ? "waiting for the stream" : event.message;
    case Event::Kind::Hit: return "lookup in the " + event.origin + " tier";
    case Event::Kind::Loaded: return "the driver loaded the artifact";
    case Event::Kind::Copied: return format_count(event.bytes, "byte ", "bytes ") + event.message;
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
    wait.reason = reason_of(event.event);
    waits.push_back(std::move(wait));
  }
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.ms > b.ms; });
  return waits;
}

double total_wait_ms(const std::vector<Wait>& waits) {
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
