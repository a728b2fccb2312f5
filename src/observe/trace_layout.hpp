#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <kiln/event.hpp>

namespace kiln {

/// An event, when it was told and by whom.
struct TraceRecord {
  Event event;
  std::chrono::nanoseconds told{};  ///< of the steady clock
  pid_t thread = 0;
  std::uint64_t id = 0;  ///< counted from 1 in the order in which they were told
};
using ThreadNames = std::map<pid_t, std::string>;

/// A line of the picture: a thread, a stream, or a further line of one of these.
struct TraceTrack {
  std::uint32_t id = 0;  ///< as `tid` in the file
  std::string name;
};

/// Where an event is drawn. Times are in ticks from the first of all.
struct TraceMark {
  enum class Flow : unsigned char { None, Start, Step, End };

  const TraceRecord* record = nullptr;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::uint32_t track = 0;  ///< TraceTrack::id
  bool slice = false;       ///< it has a duration; else it is an instant
  Flow flow = Flow::None;
  std::uint32_t flow_id = 0;

  std::int64_t duration() const { return end - start; }
};

/// Eighths of a microsecond. Importers compute with microseconds as doubles and cut off what is below a nanosecond:
/// only with binary fractions do the ends of slices come out as they were laid.
inline constexpr std::int64_t kTicksPerMicrosecond = 8;

/// Laid out as the importer wants it: in the order of time, slices of one track nested or apart, arrows from slice to
/// slice forwards in time.
struct TraceLayout {
  std::vector<TraceTrack> tracks;
  std::vector<TraceMark> marks;
};

/// Whether an event is drawn on its stream's line, and not on its thread's.
bool concerns_stream(const Event& event);
/// `stream 0x55e0`, or `default stream`.
std::string stream_name(std::uint64_t stream);

/// `records` must outlive the layout.
TraceLayout lay_out(const std::vector<TraceRecord>& records, const ThreadNames& threads);

}  // namespace kiln
