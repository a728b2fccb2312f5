// SPDX-License-Identifier: Apache-2.0
// The layout of the timeline: threads and streams are lanes, and overlapping events of a lane are stacked in rows.
#include <algorithm>
#include <map>

#include "analysis/report/model.hpp"
#include "events/trace_layout.hpp"

namespace kiln::report {
namespace {

constexpr std::size_t kMaxLanes = 24;
constexpr std::size_t kMaxConcurrent = 4;
constexpr std::size_t kMaxTextLength = 120;
// Number of columns of the timeline. Events within one column cannot be distinguished.
constexpr double kColumns = 1500;

struct LaneItem {
  const audit::RecordedEvent* event;
  double start_ms;
};

struct LaneEvents {
  std::string name;
  bool stream = false;
  bool background = false;
  std::vector<LaneItem> pieces;
};

std::string truncated(const std::string& text) {
  return text.size() <= kMaxTextLength ? text : std::string(truncate_utf8(text, kMaxTextLength)) + "…";
}

std::vector<LaneEvents> homes_of(const audit::Trace& trace) {
  std::map<std::pair<bool, std::uint64_t>, LaneEvents> homes;
  for (const audit::RecordedEvent& event : trace.events) {
    const bool stream = is_stream_event(event.event);
    LaneEvents& home = homes[{stream, stream ? event.event.stream : event.thread}];
    if (home.pieces.empty()) {
      home.stream = stream;
      home.name = stream ? stream_name(event.event.stream) : thread_name(trace, event.thread);
      home.background = !stream && is_background(trace, event.thread);
    }
    const double length = event.event.ms > 0 ? event.event.ms : 0;
    home.pieces.push_back({&event, std::max(0.0, event.end_ms - length)});
  }
  std::vector<LaneEvents> all;
  for (auto& [key, home] : homes) all.push_back(std::move(home));
  // Threads of the program first, then its streams, then the threads of kiln.
  const auto rank = [](const LaneEvents& home) { return home.background ? 2 : home.stream ? 1 : 0; };
  std::stable_sort(all.begin(), all.end(), [&](const LaneEvents& a, const LaneEvents& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.pieces.front().start_ms < b.pieces.front().start_ms;
  });
  return all;
}

/// Arranges the events of a lane in rows from left to right. Merges events of the same color that are narrower than a
/// column and within it. Not thread-safe.
class LanePacker {
 public:
  explicit LanePacker(double column) : column_(column) {}

  void put(const LaneItem& piece) {
    const Bar bar{category_of(piece.event->event), piece.event->id, 1, piece.start_ms, piece.event->end_ms};
    for (std::vector<Bar>& row : rows_) {
      if (join(row, bar)) return;
      // An event is emitted shortly after its work ended, so a small overlap is ignored.
      if (row.back().end_ms <= bar.start_ms + kSlackMs) return row.push_back(bar);
    }
    if (rows_.size() < kMaxConcurrent) {
      rows_.push_back({bar});
    } else {
      ++crowded_;
    }
  }
  std::vector<std::vector<Bar>> take() { return std::move(rows_); }
  std::uint64_t crowded() const { return crowded_; }

 private:
  static constexpr double kSlackMs = 0.02;

  bool join(std::vector<Bar>& row, const Bar& bar) const {
    for (auto other = row.rbegin(); other != row.rend(); ++other) {
      if (bar.end_ms - other->start_ms > column_) return false;
      if (other->mark != bar.mark || other->end_ms - other->start_ms > column_) continue;
      other->end_ms = std::max(other->end_ms, bar.end_ms);
      ++other->count;
      return true;
    }
    return false;
  }

  const double column_;
  std::vector<std::vector<Bar>> rows_;
  std::uint64_t crowded_ = 0;
};

Lane lane_of(const LaneEvents& home, double column, std::uint64_t& not_drawn) {
  LanePacker packer(column);
  for (const LaneItem& piece : home.pieces) packer.put(piece);
  not_drawn += packer.crowded();
  return {home.name, home.stream, packer.take()};
}

// Creates the texts only for the bars that are drawn, which are few in a large trace.
void put_texts(const audit::Trace& trace, std::vector<Lane>& lanes) {
  const auto& events = trace.events;
  for (Lane& lane : lanes) {
    for (auto& row : lane.rows) {
      for (Bar& bar : row) {
        const auto event = std::lower_bound(events.begin(), events.end(), bar.event,
                                            [](const audit::RecordedEvent& a, std::uint64_t id) { return a.id < id; });
        const Event& reported = event->event;
        bar.kind = event_name(reported);
        bar.ms = reported.ms;
        bar.unit = truncated(subject_of(reported));
        if (lane.stream) bar.thread = truncated(thread_name(trace, event->thread));
        bar.origin = truncated(reported.origin);
        bar.message = truncated(reported.message);
      }
    }
  }
}

std::size_t bars_in(const std::vector<Lane>& lanes) {
  std::size_t count = 0;
  for (const Lane& lane : lanes) {
    for (const auto& row : lane.rows) count += row.size();
  }
  return count;
}

}  // namespace

std::vector<Lane> lanes_of(const audit::Trace& trace, std::size_t maximum, std::uint64_t& not_drawn) {
  double span = 0;
  for (const audit::RecordedEvent& event : trace.events) span = std::max(span, event.end_ms);
  std::vector<LaneEvents> homes = homes_of(trace);
  for (LaneEvents& home : homes) {
    std::stable_sort(home.pieces.begin(), home.pieces.end(), [](const LaneItem& a, const LaneItem& b) {
      if (a.start_ms != b.start_ms) return a.start_ms < b.start_ms;
      return a.event->end_ms > b.event->end_ms;  // containing events come first
    });
  }
  std::uint64_t without_lane = 0;
  while (homes.size() > kMaxLanes) {
    without_lane += homes.back().pieces.size();
    homes.pop_back();
  }
  // If there are still too many bars, use fewer columns. With one column there is at most one bar per color.
  for (double columns = kColumns;; columns /= 2) {
    not_drawn = without_lane;
    std::vector<Lane> lanes;
    for (const LaneEvents& home : homes) lanes.push_back(lane_of(home, span / columns, not_drawn));
    if (bars_in(lanes) > maximum && columns >= 4) continue;
    put_texts(trace, lanes);
    return lanes;
  }
}

}  // namespace kiln::report
