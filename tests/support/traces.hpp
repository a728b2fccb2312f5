#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "observe/trace.hpp"
#include "runtime/audit.hpp"

namespace kiln::test {

/// A trace that is made by hand: what a program would have told, event by event, through the writer and the reader that
/// real traces go through.
class HandMadeTrace {
 public:
  static constexpr std::uint64_t kStream = 0x70;

  HandMadeTrace() = default;
  explicit HandMadeTrace(TraceWriter::Options options) : writer_(options) {}

  /// A decision, and a run by it that begins.
  void begin(const char* requested, const char* selected, Residency residency = Residency::Host,
             std::uint64_t rows = 1000) {
    work_ = {"test.pipeline", "", 0, ++numbers_, rows, residency, Purpose::Unsaid};
    decided(requested, selected);
    work_.dispatch = ++numbers_;
    chosen_ = selected;
  }
  void decided(const char* requested, const char* selected) {
    Event event = made(Event::Kind::Decided, "as the test wants it");
    event.requested = requested;
    event.selected = selected;
    if (std::string(selected) != "cpu") event.target = "a device made by hand";
    tell(event);
  }
  void dispatched(const char* selected) {
    Event event = made(Event::Kind::Dispatched);
    event.selected = selected;
    event.origin = chosen_;
    event.ms = 5;
    tell(event);
    work_ = {};
  }
  void launched(const char* kernel, std::uint64_t blocks = 1000, std::uint32_t block = 256,
                std::uint64_t stream = kStream) {
    Event event = made(Event::Kind::Launched, kernel);
    event.target = "sm_80";
    event.stream = stream;
    event.blocks = blocks;
    event.block = block;
    event.advised = 256;
    tell(event);
  }
  void copied_in(std::uint64_t bytes) { copied("to the device", bytes, Purpose::Unsaid, kStream); }
  void copied_out(std::uint64_t bytes, Purpose purpose = Purpose::Unsaid, std::uint64_t stream = kStream) {
    copied("from the device", bytes, purpose, stream);
  }
  void allocated(std::uint64_t bytes, const char* what = "allocated") {
    Event event = made(Event::Kind::Allocated, what);
    event.stream = kStream;
    event.bytes = bytes;
    tell(event);
  }
  void synchronised(std::uint64_t stream = kStream, Purpose purpose = Purpose::Unsaid) {
    Event event = made(Event::Kind::Synchronised);
    event.stream = stream;
    event.work.purpose = purpose;
    tell(event);
  }
  void stage_ran(const char* stage, const char* selected, double ms) {
    Event event = made(Event::Kind::StageRan);
    event.work.stage = stage;
    event.selected = selected;
    event.ms = ms;
    tell(event);
  }
  /// Anything else, with the work that is done just now.
  Event made(Event::Kind kind, std::string message = {}) const {
    Event event;
    event.kind = kind;
    event.message = std::move(message);
    event.work = work_;
    return event;
  }
  void tell(const Event& event) { writer_.tell(event); }
  Work& work() { return work_; }

  std::string json() const { return writer_.json(); }
  audit::Report report() const { return audit::examine(audit::parse_trace(json()).value()); }

 private:
  void copied(const char* which, std::uint64_t bytes, Purpose purpose, std::uint64_t stream) {
    Event event = made(Event::Kind::Copied, which);
    event.stream = stream;
    event.bytes = bytes;
    event.work.purpose = purpose;
    tell(event);
  }

  TraceWriter writer_;
  Work work_;
  std::string chosen_;
  std::uint64_t numbers_ = 0;
};

/// `HIGH sync_between_launches`, …: what was found, in the report's order.
inline std::vector<std::string> found_in(const audit::Report& report) {
  std::vector<std::string> found;
  for (const audit::Finding& finding : report.findings) {
    found.push_back(std::string(to_string(finding.rule->severity)) + ' ' + finding.rule->name);
  }
  return found;
}

}  // namespace kiln::test
