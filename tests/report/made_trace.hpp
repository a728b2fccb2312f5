#pragma once

#include <string>
#include <utility>

#include "report/model.hpp"

namespace kiln::test {

/// A trace as the reader gives it, made event by event with times of one's own.
class MadeTrace {
 public:
  static constexpr std::uint64_t kMain = 100;
  static constexpr std::uint64_t kWarm = 101;

  explicit MadeTrace(std::string process = "app") {
    trace_.process = std::move(process);
    trace_.number = kMain;
    trace_.threads[kWarm] = "kiln-warm-0";
  }
  /// It ended at `end` and took `ms`.
  MadeTrace& tell(Event::Kind kind, double end, double ms, std::uint64_t flow = 0, std::uint64_t thread = kMain) {
    Event event;
    event.kind = kind;
    event.unit = flow == 0 ? "" : "unit " + std::to_string(flow);
    event.target = flow == 0 ? "" : "sm_90";
    event.flow = flow;
    event.ms = ms;
    trace_.events.push_back({trace_.events.size() + 1, end - ms, end, thread, std::move(event)});
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
