// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "events/event_sink.hpp"
#include "events/trace_layout.hpp"

namespace kiln {

/// A sink that collects events and writes them as a trace for Perfetto (`docs/internals/trace-format.md`). It stores
/// the first `max_events` events, because programs are slow at their start, and counts the rest. Thread-safe.
class TraceWriter final : public EventSink {
 public:
  struct Options {
    std::size_t max_events = 100'000;  ///< about 300 bytes each
  };
  TraceWriter() : TraceWriter(Options{}) {}
  explicit TraceWriter(Options options, const Clock& clock = system_clock()) : options_(options), clock_(clock) {}

  void on_event(const Event& event) override;

  /// Returns the trace so far. Can be called more than once.
  std::string json() const;
  /// Writes the trace to a file atomically.
  Status write(const std::string& path) const;

 private:
  const Options options_;
  const Clock& clock_;
  mutable Mutex mutex_;
  std::vector<TraceRecord> records_ KILN_GUARDED_BY(mutex_);
  ThreadNames threads_ KILN_GUARDED_BY(mutex_);
  std::size_t dropped_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln
