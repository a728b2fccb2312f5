#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "observe/sink.hpp"
#include "observe/trace_layout.hpp"

namespace kiln {

/// Collects events and writes them as a trace that Perfetto opens (`docs/trace.md`). Any thread. It keeps the first
/// `most_events` and counts the rest: what is slow in a program comes first.
class TraceWriter final : public EventSink {
 public:
  struct Options {
    std::size_t most_events = 100'000;  ///< some 300 bytes each
  };
  TraceWriter() : TraceWriter(Options{}) {}
  explicit TraceWriter(Options options, const Clock& clock = system_clock()) : options_(options), clock_(clock) {}

  void tell(const Event& event) override;

  /// How many it did not keep.
  std::size_t dropped() const;
  /// All so far. It may be asked for more than once.
  std::string json() const;
  /// Likewise as a file, which appears in one step.
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
