// SPDX-License-Identifier: Apache-2.0
// Audit rules: several streams whose work does not run at the same time.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

/// Three launches or more on the default stream, each after a launch on another stream, where a run (or a thread
/// outside of runs) uses two others or more.
constexpr Rule kDefaultBetween{"default_stream_between_streams",
                               Check::NoSynchronization,
                               Severity::High,
                               true,
                               "helpers launch on the default stream between launches on several other streams",
                               "pass the caller's stream to every helper: the default stream and the others wait for "
                               "each other, or race if they were created as non-blocking"};
/// The work of a run (or of a thread outside of runs) returned twice or more to a stream that it had left, and no
/// call was ever made while another stream had launches that the host had not waited for; with times of the device:
/// no two of them intersect.
constexpr Rule kNoOverlap{"streams_never_overlap",
                          Check::NoSynchronization,
                          Severity::Medium,
                          true,
                          "work alternates between streams, and never runs on two of them at the same time",
                          "launch the work of all streams first and wait afterwards; or use one stream"};
/// Two copies or more of 64 KiB from or to pageable host memory (`pinned` is false) while another stream had
/// launches.
constexpr Rule kPageableCopy{
    "pageable_copy",
    Check::NoSynchronization,
    Severity::Medium,
    true,
    "large copies next to the work of another stream use pageable memory, which the driver copies a second time",
    "allocate the host buffers of these copies once as page-locked memory (cudaMallocHost, cudaHostRegister)"};

constexpr std::uint64_t kLargeCopy = 64 << 10;  // bytes; below this the copy itself costs little
constexpr std::size_t kRepeatedCopy = 2;
constexpr std::size_t kReturns = 2;  // to a stream that was used before: A, B, A, B
constexpr std::size_t kHelpers = 3;  // launches on the default stream

bool uses_device(const RecordedEvent& event) { return is_launch(event) || is(event, Event::Kind::Copied); }
bool is_measurement(const RecordedEvent& event) { return event.event.context.purpose == Purpose::Trace; }

/// The streams with launches that the host has not waited for. Not thread-safe.
class InFlight {
 public:
  /// `copies_wait` is true if a copy has completed when its event is emitted, as kiln's copies have.
  explicit InFlight(bool copies_wait) : copies_wait_(copies_wait) {}

  void see(const RecordedEvent& event) {
    const std::uint64_t stream = event.event.stream;
    if (is_launch(event)) busy_.insert(stream);
    const bool copied = copies_wait_ && is(event, Event::Kind::Copied);
    if (is_measurement(event) || !(copied || is(event, Event::Kind::Synchronized))) return;
    const bool everything = stream == 0 || event.event.message == "the device" || event.event.message == kUnknownStream;
    if (everything && !copied) busy_.clear();
    busy_.erase(stream);
  }
  /// Returns whether a stream other than this one has work.
  bool besides(std::uint64_t stream) const { return busy_.size() > busy_.count(stream); }

 private:
  const bool copies_wait_;
  std::set<std::uint64_t> busy_;
};

// Returns the launches on the default stream that follow a launch on another stream, if there are several others.
Events default_between(const Events& events) {
  Events between;
  std::set<std::uint64_t> others;
  std::uint64_t before = 0;
  for (const RecordedEvent* event : events) {
    if (!is_launch(*event)) continue;
    const std::uint64_t stream = event->event.stream;
    if (stream == 0 && before != 0) between.push_back(event);
    if (stream != 0) others.insert(stream);
    before = stream;
  }
  return others.size() >= 2 && between.size() >= kHelpers ? between : Events();
}

Events pageable_copies(const Events& events, bool copies_wait) {
  Events copies;
  InFlight streams(copies_wait);
  for (const RecordedEvent* event : events) {
    const bool large = (is_copy_in(*event) || is_copy_out(*event)) && event->event.bytes >= kLargeCopy;
    if (large && event->event.pinned == false && !is_measurement(*event) && streams.besides(event->event.stream)) {
      copies.push_back(event);
    }
    streams.see(*event);
  }
  return copies.size() >= kRepeatedCopy ? copies : Events();
}

// Counts how often work returns to a stream that was used before. A part of the work without a launch does not count.
class Alternation {
 public:
  void see(const RecordedEvent& event) {
    const std::uint64_t stream = event.event.stream;
    if (now_ && stream != *now_) {
      if (seen_.count(stream) != 0 && launched_) returns_.push_back(&event);
      launched_ = false;
    }
    now_ = stream;
    seen_.insert(stream);
    launched_ = launched_ || is_launch(event);
  }
  Events returns() const { return returns_.size() >= kReturns ? returns_ : Events(); }

 private:
  std::set<std::uint64_t> seen_;
  std::optional<std::uint64_t> now_;
  bool launched_ = false;
  Events returns_;
};

// By the calls of the host: returns nothing if one call was made while another stream had work.
Events never_overlapping_calls(const Events& events, bool copies_wait) {
  InFlight streams(copies_wait);
  Alternation order;
  for (const RecordedEvent* event : events) {
    if (uses_device(*event) && event->event.stream != 0 && !is_measurement(*event)) {
      if (streams.besides(event->event.stream)) return {};
      order.see(*event);
    }
    streams.see(*event);
  }
  return order.returns();
}

// By the times on the device, for formats that have them.
Events never_overlapping_times(Events events) {
  std::sort(events.begin(), events.end(),
            [](const auto* a, const auto* b) { return a->device_start_ms < b->device_start_ms; });
  Alternation order;
  double last = 0;                // end of all work so far …
  std::uint64_t last_stream = 0;  // … and the stream of that work
  for (const RecordedEvent* event : events) {
    const std::uint64_t stream = event->event.stream;
    if (event->device_start_ms < last && stream != last_stream) return {};
    if (event->device_end_ms > last) last = event->device_end_ms, last_stream = stream;
    order.see(*event);
  }
  return order.returns();
}

Events never_overlapping(const Events& events, bool copies_wait) {
  Events timed;
  for (const RecordedEvent* event : events) {
    if (uses_device(*event) && event->device_end_ms > 0) timed.push_back(event);
  }
  return timed.empty() ? never_overlapping_calls(events, copies_wait) : never_overlapping_times(std::move(timed));
}

void check_group(const Events& events, bool copies_wait, Findings& to) {
  if (const Events launches = default_between(events); !launches.empty()) {
    to.add(kDefaultBetween, launches,
           format_count(launches.size(), "launch", "launches") + " on the default stream, each after one on another");
  } else if (const Events returns = never_overlapping(events, copies_wait); !returns.empty()) {
    to.add(kNoOverlap, returns,
           "work changed between streams " + std::to_string(returns.size()) +
               " times, each time after the other stream had finished");
  }
  if (const Events copies = pageable_copies(events, copies_wait); !copies.empty()) {
    to.add(kPageableCopy, copies,
           format_count(copies.size(), "copy", "copies") + " of at least " + format_bytes(kLargeCopy) +
               " from or to pageable memory while another stream had work");
  }
}

}  // namespace

// A group is a run, or all that a thread did outside of runs: an implicit operation has one stream only.
void check_streams(const View& view, Findings& to) {
  const bool copies_wait = view.trace.format == TraceFormat::Kiln;
  for (const Run& run : view.runs) {
    if (run.number != 0) check_group(run.events, copies_wait, to);
  }
  std::map<std::uint64_t, Events> outside;  // by thread
  for (const RecordedEvent& event : view.trace.events) {
    if (event.event.context.dispatch != 0) continue;
    if (uses_device(event) || is(event, Event::Kind::Synchronized)) outside[event.thread].push_back(&event);
  }
  for (const auto& [thread, events] : outside) check_group(events, copies_wait, to);
}

Rules stream_rules() { return {&kDefaultBetween, &kNoOverlap, &kPageableCopy}; }

}  // namespace kiln::audit
