// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kiln/event.hpp>

namespace kiln {

/// An event with the time and the thread at which it was emitted.
struct TraceRecord {
  Event event;
  std::chrono::nanoseconds emitted_at{};  ///< steady clock
  pid_t thread = 0;
  std::uint64_t id = 0;  ///< counted from 1 in the order of emission
};
using ThreadNames = std::map<pid_t, std::string>;

/// A row of the trace: a thread, a stream, or an additional row of one of these.
struct TraceTrack {
  std::uint32_t id = 0;  ///< written as `tid`
  std::string name;
};

/// The first id of a track that is not a thread. No Linux thread id is this high (the limit is 2^22).
inline constexpr std::uint32_t kFirstOtherTrack = 1U << 28;

/// The position of an event in the trace. Times are in ticks from the first event.
struct TraceItem {
  enum class Flow : unsigned char { None, Start, Step, End };

  const TraceRecord* record = nullptr;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint32_t track = 0;  ///< TraceTrack::id
  bool is_slice = false;    ///< has a duration; else it is an instant
  Flow flow = Flow::None;
  std::uint32_t flow_id = 0;

  std::int64_t duration() const { return end - start; }
};

/// Ticks are eighths of a microsecond. Importers compute with microseconds as doubles and cut off fractions of a
/// nanosecond; only binary fractions keep the ends of slices exact.
inline constexpr std::int64_t kTicksPerMicrosecond = 8;

/// A layout that the importer accepts: sorted by time, slices of one track nested or disjoint, arrows from slice to
/// slice and forward in time.
struct TraceLayout {
  std::vector<TraceTrack> tracks;
  std::vector<TraceItem> marks;
};

/// Returns whether an event belongs on the row of its stream instead of its thread.
bool is_stream_event(const Event& event);
/// Returns `stream 0x55e0`, or `default stream`.
std::string stream_name(std::uint64_t stream);

/// Lays out the records, which must outlive the layout.
TraceLayout layout_trace(const std::vector<TraceRecord>& records, const ThreadNames& threads);

}  // namespace kiln
