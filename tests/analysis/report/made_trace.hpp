// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "analysis/report/model.hpp"

namespace kiln::test {

/// A builder of parsed traces with chosen events and times.
class MadeTrace {
 public:
  static constexpr std::uint64_t kMain = 100;
  static constexpr std::uint64_t kWarm = 101;

  explicit MadeTrace(std::string process = "app") {
    trace_.process = std::move(process);
    trace_.pid = kMain;
    trace_.threads[kWarm] = "kiln-compile-0";
  }
  /// Adds an event that ended at `end` and took `ms`.
  MadeTrace& emit(Event::Kind kind, double end, double ms, std::uint64_t flow = 0, std::uint64_t thread = kMain) {
    Event event;
    event.kind = kind;
    event.unit = flow == 0 ? "" : "unit " + std::to_string(flow);
    event.target = flow == 0 ? "" : "sm_90";
    event.task_id = flow;
    event.ms = ms;
    trace_.events.push_back({.id = trace_.events.size() + 1,
                             .start_ms = end - ms,
                             .end_ms = end,
                             .thread = thread,
                             .event = std::move(event)});
    return *this;
  }
  MadeTrace& origin(const char* tier) {
    return last([&](Event& event) { event.origin = tier; });
  }
  MadeTrace& message(const char* text) {
    return last([&](Event& event) { event.message = text; });
  }
  MadeTrace& unit(const std::string& name) {
    return last([&](Event& event) { event.unit = name; });
  }

  const audit::Trace& trace() const { return trace_; }
  audit::Trace& trace() { return trace_; }

 private:
  template <class Change>
  MadeTrace& last(Change change) {
    change(trace_.events.back().event);
    return *this;
  }
  audit::Trace trace_;
};

}  // namespace kiln::test
