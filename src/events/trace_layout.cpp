// SPDX-License-Identifier: Apache-2.0
#include "events/trace_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <unordered_map>
#include <utility>

namespace kiln {
namespace {

constexpr std::chrono::nanoseconds kTick{1000 / kTicksPerMicrosecond};
// An event is emitted shortly after the end of its operation, so the next one can seem to begin before that end. An
// overlap of this size is corrected by moving the later event; a larger overlap is real and gets its own row.
constexpr std::int64_t kSlack = 20 * kTicksPerMicrosecond;

// Returns whether the kind is a step between a request and the first use; arrows connect these steps.
bool is_task_event(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::Requested:
    case Event::Kind::Hit:
    case Event::Kind::ClaimWaited:
    case Event::Kind::Compiled:
    case Event::Kind::CompileFailed:
    case Event::Kind::BlockingCompile:
    case Event::Kind::Loaded:
    case Event::Kind::LoadRejected:
    case Event::Kind::Launched:
    case Event::Kind::CalledCompiled: return true;
    default: return false;
  }
}

std::chrono::nanoseconds began(const TraceRecord& record) {
  const double ns = record.event.ms * 1e6;
  // Also false for NaN.
  if (!(ns > 0)) return record.emitted_at;
  const auto maximum = static_cast<double>(record.emitted_at.count());
  return record.emitted_at - std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(ns, maximum)));
}

std::vector<TraceItem> marks_of(const std::vector<TraceRecord>& records) {
  std::chrono::nanoseconds origin = std::chrono::nanoseconds::max();
  for (const TraceRecord& record : records) origin = std::min(origin, began(record));
  std::vector<TraceItem> marks;
  marks.reserve(records.size());
  for (const TraceRecord& record : records) {
    TraceItem mark;
    mark.record = &record;
    mark.start = (began(record) - origin) / kTick;
    mark.end = (record.emitted_at - origin) / kTick;
    // An arrow must end at a slice, never at an instant.
    mark.is_slice = record.event.ms > 0 || (record.event.task_id != 0 && is_task_event(record.event.kind));
    if (mark.is_slice) mark.end = std::max(mark.end, mark.start + 1);
    marks.push_back(mark);
  }
  return marks;
}

// The order in the file: enclosing slices before enclosed ones, slices before instants.
bool before(const TraceItem& a, const TraceItem& b) {
  if (a.start != b.start) return a.start < b.start;
  if (a.is_slice != b.is_slice) return a.is_slice;
  return a.duration() > b.duration();
}

// One row of a track, filled from left to right. `open_` holds the slices that can enclose the next one.
class Lane {
 public:
  explicit Lane(std::uint32_t id) : id_(id) {}
  std::uint32_t id() const { return id_; }

  /// Takes the slice, moved by at most the slack, if it can be nested or disjoint.
  bool take(TraceItem& mark) {
    const auto placed = place(mark.start, mark.end);
    if (!placed) return false;
    mark.start = placed->first;
    mark.end = placed->second;
    mark.track = id_;
    while (!open_.empty() && open_.back().second <= mark.start) open_.pop_back();
    open_.push_back(*placed);
    return true;
  }

 private:
  using Span = std::pair<std::int64_t, std::int64_t>;

  std::optional<Span> place(std::int64_t start, std::int64_t end) const {
    const std::int64_t furthest = start + kSlack;
    for (auto outer = open_.rbegin(); outer != open_.rend(); ++outer) {
      if (outer->second <= start) continue;
      // An arrow could not distinguish two slices that start at the same time.
      const std::int64_t inside = std::max(start, outer->first + 1);
      if (inside <= furthest && inside < end && end <= outer->second) return Span{inside, end};
      start = outer->second;
      end = std::max(end, start + 1);
      if (start > furthest) return std::nullopt;
    }
    return Span{start, end};
  }

  std::uint32_t id_;
  std::vector<Span> open_;
};

// The rows of all threads and streams.
class Tracks {
 public:
  explicit Tracks(const ThreadNames& threads) : threads_(threads) {}

  void put(TraceItem& mark) {
    TrackGroup& home = track_group_of(*mark.record);
    if (!mark.is_slice) {
      mark.track = home.lanes.front().id();
      return;
    }
    for (Lane& lane : home.lanes) {
      if (lane.take(mark)) return;
    }
    tracks_.push_back({next_++, home.name + " (" + std::to_string(home.lanes.size() + 1) + ")"});
    home.lanes.emplace_back(tracks_.back().id);
    home.lanes.back().take(mark);
  }
  std::vector<TraceTrack> take() { return std::move(tracks_); }

 private:
  struct TrackGroup {
    std::string name;
    std::vector<Lane> lanes;
  };

  TrackGroup& track_group_of(const TraceRecord& record) {
    const bool stream = is_stream_event(record.event);
    const auto number = stream ? record.event.stream : static_cast<std::uint64_t>(record.thread);
    TrackGroup& home = homes_[{stream, number}];
    if (!home.lanes.empty()) return home;
    if (stream) {
      home.name = stream_name(number);
    } else if (const auto known = threads_.find(record.thread); known != threads_.end() && !known->second.empty()) {
      home.name = known->second;
    } else {
      home.name = "thread " + std::to_string(number);
    }
    tracks_.push_back({stream ? next_++ : static_cast<std::uint32_t>(number), home.name});
    home.lanes.emplace_back(tracks_.back().id);
    return home;
  }

  const ThreadNames& threads_;
  std::map<std::pair<bool, std::uint64_t>, TrackGroup> homes_;
  std::vector<TraceTrack> tracks_;
  std::uint32_t next_ = kFirstOtherTrack;
};

// Connects the events of one compile task, from the first known event to its first launch.
void join(std::vector<TraceItem>& marks) {
  struct TaskArrow {
    TraceItem* last = nullptr;
    bool used = false;
  };
  std::unordered_map<std::uint64_t, TaskArrow> ways;
  std::uint32_t joined = 0;
  for (TraceItem& mark : marks) {
    const Event& event = mark.record->event;
    if (event.task_id == 0 || !is_task_event(event.kind)) continue;
    TaskArrow& way = ways[event.task_id];
    // A request can be emitted after a thread has started the task: no arrow goes back to it.
    if (way.used || (way.last != nullptr && event.kind == Event::Kind::Requested)) continue;
    way.used = event.kind == Event::Kind::Launched || event.kind == Event::Kind::CalledCompiled;
    if (way.last != nullptr) {
      const bool first = way.last->flow == TraceItem::Flow::None;
      if (first) way.last->flow_id = ++joined;
      way.last->flow = first ? TraceItem::Flow::Start : TraceItem::Flow::Step;
      mark.flow = TraceItem::Flow::End;
      mark.flow_id = way.last->flow_id;
    }
    way.last = &mark;
  }
}

}  // namespace

bool is_stream_event(const Event& event) {
  return event.stream != 0 || event.kind == Event::Kind::Launched || event.kind == Event::Kind::CalledCompiled ||
         event.kind == Event::Kind::Copied || event.kind == Event::Kind::Synchronized;
}

std::string stream_name(std::uint64_t stream) {
  if (stream == 0) return "default stream";
  char text[40];
  std::snprintf(text, sizeof text, "stream 0x%llx", static_cast<unsigned long long>(stream));
  return text;
}

TraceLayout layout_trace(const std::vector<TraceRecord>& records, const ThreadNames& threads) {
  TraceLayout layout;
  layout.marks = marks_of(records);
  std::stable_sort(layout.marks.begin(), layout.marks.end(), before);
  Tracks tracks(threads);
  for (TraceItem& mark : layout.marks) tracks.put(mark);
  layout.tracks = tracks.take();
  std::stable_sort(layout.marks.begin(), layout.marks.end(), before);  // some were moved
  join(layout.marks);
  return layout;
}

}  // namespace kiln
