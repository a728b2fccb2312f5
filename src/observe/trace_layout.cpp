#include "observe/trace_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <unordered_map>
#include <utility>

namespace kiln {
namespace {

constexpr std::chrono::nanoseconds kTick{1000 / kTicksPerMicrosecond};
// No thread of Linux has a number as high as this (the limit is 2^22).
constexpr std::uint32_t kFirstOtherTrack = 1U << 28;
// An event is told a little after what it tells of has ended, so what came next may seem to begin before that. So much
// is put right by moving the later one; more is a real overlap and gets a line of its own.
constexpr std::int64_t kSlack = 20 * kTicksPerMicrosecond;

// The stations on the way from a request to a use, which the arrows join.
bool on_the_way(Event::Kind kind) {
  switch (kind) {
    case Event::Kind::Requested:
    case Event::Kind::Hit:
    case Event::Kind::Waited:
    case Event::Kind::Compiled:
    case Event::Kind::CompileFailed:
    case Event::Kind::HotCompile:
    case Event::Kind::Loaded:
    case Event::Kind::LoadRefused:
    case Event::Kind::Launched: return true;
    default: return false;
  }
}

std::chrono::nanoseconds began(const TraceRecord& record) {
  const double ns = record.event.ms * 1e6;
  // Also false for what is not a number.
  if (!(ns > 0)) return record.told;
  const auto most = static_cast<double>(record.told.count());
  return record.told - std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(ns, most)));
}

std::vector<TraceMark> marks_of(const std::vector<TraceRecord>& records) {
  std::chrono::nanoseconds origin = std::chrono::nanoseconds::max();
  for (const TraceRecord& record : records) origin = std::min(origin, began(record));
  std::vector<TraceMark> marks;
  marks.reserve(records.size());
  for (const TraceRecord& record : records) {
    TraceMark mark;
    mark.record = &record;
    mark.start = (began(record) - origin) / kTick;
    mark.end = (record.told - origin) / kTick;
    // An arrow ends at a slice, never at an instant.
    mark.slice = record.event.ms > 0 || (record.event.flow != 0 && on_the_way(record.event.kind));
    if (mark.slice) mark.end = std::max(mark.end, mark.start + 1);
    marks.push_back(mark);
  }
  return marks;
}

// What comes first in the file: what contains before what is contained, slices before instants.
bool before(const TraceMark& a, const TraceMark& b) {
  if (a.start != b.start) return a.start < b.start;
  if (a.slice != b.slice) return a.slice;
  return a.duration() > b.duration();
}

// One line of a track, filled from left to right. `open_` are the slices that the next one may lie in.
class Lane {
 public:
  explicit Lane(std::uint32_t id) : id_(id) {}
  std::uint32_t id() const { return id_; }

  /// Takes the slice, moved by no more than the slack, where it can be nested or stand apart.
  bool take(TraceMark& mark) {
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
      // Two that begin together could not be told apart by an arrow that begins with one of them.
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

// The lines of all threads and streams.
class Tracks {
 public:
  explicit Tracks(const ThreadNames& threads) : threads_(threads) {}

  void put(TraceMark& mark) {
    Home& home = home_of(*mark.record);
    if (!mark.slice) {
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
  struct Home {
    std::string name;
    std::vector<Lane> lanes;
  };

  Home& home_of(const TraceRecord& record) {
    const bool stream = concerns_stream(record.event);
    const auto number = stream ? record.event.stream : static_cast<std::uint64_t>(record.thread);
    Home& home = homes_[{stream, number}];
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
  std::map<std::pair<bool, std::uint64_t>, Home> homes_;
  std::vector<TraceTrack> tracks_;
  std::uint32_t next_ = kFirstOtherTrack;
};

// Joins what happened to one unit, from the first that is known of it to its first launch.
void join(std::vector<TraceMark>& marks) {
  struct Way {
    TraceMark* last = nullptr;
    bool used = false;
  };
  std::unordered_map<std::uint64_t, Way> ways;
  std::uint32_t joined = 0;
  for (TraceMark& mark : marks) {
    const Event& event = mark.record->event;
    if (event.flow == 0 || !on_the_way(event.kind)) continue;
    Way& way = ways[event.flow];
    // A request may be told after a thread has begun with it: no arrow goes back to it.
    if (way.used || (way.last != nullptr && event.kind == Event::Kind::Requested)) continue;
    way.used = event.kind == Event::Kind::Launched;
    if (way.last != nullptr) {
      const bool first = way.last->flow == TraceMark::Flow::None;
      if (first) way.last->flow_id = ++joined;
      way.last->flow = first ? TraceMark::Flow::Start : TraceMark::Flow::Step;
      mark.flow = TraceMark::Flow::End;
      mark.flow_id = way.last->flow_id;
    }
    way.last = &mark;
  }
}

}  // namespace

bool concerns_stream(const Event& event) {
  return event.stream != 0 || event.kind == Event::Kind::Launched || event.kind == Event::Kind::Copied ||
         event.kind == Event::Kind::Synchronised;
}

std::string stream_name(std::uint64_t stream) {
  if (stream == 0) return "default stream";
  char text[40];
  std::snprintf(text, sizeof text, "stream 0x%llx", static_cast<unsigned long long>(stream));
  return text;
}

TraceLayout lay_out(const std::vector<TraceRecord>& records, const ThreadNames& threads) {
  TraceLayout layout;
  layout.marks = marks_of(records);
  std::stable_sort(layout.marks.begin(), layout.marks.end(), before);
  Tracks tracks(threads);
  for (TraceMark& mark : layout.marks) tracks.put(mark);
  layout.tracks = tracks.take();
  std::stable_sort(layout.marks.begin(), layout.marks.end(), before);  // some were moved
  join(layout.marks);
  return layout;
}

}  // namespace kiln
