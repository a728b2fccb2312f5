// Where events are drawn: threads and streams as lanes, what overlaps on one of them below each other.
#include <algorithm>
#include <map>

#include "observe/trace_layout.hpp"
#include "report/model.hpp"

namespace kiln::report {
namespace {

constexpr std::size_t kMostLanes = 24;
constexpr std::size_t kMostBeside = 4;
constexpr std::size_t kLongestText = 240;
// Two things nearer to each other than this part of the picture cannot be told apart.
constexpr double kColumns = 1500;

struct Piece {
  const audit::RecordedEvent* event;
  double start_ms;
};

struct Home {
  std::string name;
  bool stream = false;
  bool background = false;
  std::vector<Piece> pieces;
};

std::string text_of(const audit::Trace& trace, const audit::RecordedEvent& event) {
  const Event& told = event.event;
  std::string text = words_for(told.kind);
  if (const std::string subject = subject_of(told); !subject.empty()) text += " · " + subject;
  if (told.ms > 0) text += " · " + time_words(told.ms);
  text += " · at " + time_words(event.start_ms) + " · " + thread_name(trace, event.thread);
  if (!told.origin.empty()) text += " · " + told.origin;
  if (!told.message.empty()) text += " · " + told.message;
  return text.size() <= kLongestText ? text : std::string(cut_text(text, kLongestText)) + "…";
}

std::vector<Home> homes_of(const audit::Trace& trace) {
  std::map<std::pair<bool, std::uint64_t>, Home> homes;
  for (const audit::RecordedEvent& event : trace.events) {
    const bool stream = concerns_stream(event.event);
    Home& home = homes[{stream, stream ? event.event.stream : event.thread}];
    if (home.pieces.empty()) {
      home.stream = stream;
      home.name = stream ? stream_name(event.event.stream) : thread_name(trace, event.thread);
      home.background = !stream && is_background(trace, event.thread);
    }
    const double length = event.event.ms > 0 ? event.event.ms : 0;
    home.pieces.push_back({&event, std::max(0.0, event.end_ms - length)});
  }
  std::vector<Home> all;
  for (auto& [key, home] : homes) all.push_back(std::move(home));
  // The program's threads first, then its streams, then kiln's own threads.
  const auto rank = [](const Home& home) { return home.background ? 2 : home.stream ? 1 : 0; };
  std::stable_sort(all.begin(), all.end(), [&](const Home& a, const Home& b) {
    return rank(a) != rank(b) ? rank(a) < rank(b) : a.pieces.front().start_ms < b.pieces.front().start_ms;
  });
  return all;
}

/// Puts a lane's events into rows from left to right. Of what is narrower than a column, all of one colour within it
/// become one.
class Packer {
 public:
  explicit Packer(double column) : column_(column) {}

  void put(const Piece& piece) {
    const Bar bar{mark_of(piece.event->event.kind), piece.event->id, 1, piece.start_ms, piece.event->end_ms, ""};
    for (std::vector<Bar>& row : rows_) {
      if (join(row, bar)) return;
      // An event is told a little after what it tells of has ended: that is no overlap.
      if (row.back().end_ms <= bar.start_ms + kSlackMs) return row.push_back(bar);
    }
    if (rows_.size() < kMostBeside) {
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

Lane lane_of(const Home& home, double column, std::uint64_t& not_drawn) {
  Packer packer(column);
  for (const Piece& piece : home.pieces) packer.put(piece);
  not_drawn += packer.crowded();
  return {home.name, home.stream, packer.take()};
}

// For what is drawn alone: of a large trace that is little.
void put_texts(const audit::Trace& trace, std::vector<Lane>& lanes) {
  const auto& events = trace.events;
  for (Lane& lane : lanes) {
    for (auto& row : lane.rows) {
      for (Bar& bar : row) {
        const auto event = std::lower_bound(events.begin(), events.end(), bar.event,
                                            [](const audit::RecordedEvent& a, std::uint64_t id) { return a.id < id; });
        bar.text = text_of(trace, *event);
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

std::vector<Lane> lanes_of(const audit::Trace& trace, std::size_t most, std::uint64_t& not_drawn) {
  double span = 0;
  for (const audit::RecordedEvent& event : trace.events) span = std::max(span, event.end_ms);
  std::vector<Home> homes = homes_of(trace);
  for (Home& home : homes) {
    std::stable_sort(home.pieces.begin(), home.pieces.end(), [](const Piece& a, const Piece& b) {
      if (a.start_ms != b.start_ms) return a.start_ms < b.start_ms;
      return a.event->end_ms > b.event->end_ms;  // what contains others is above them
    });
  }
  std::uint64_t without_lane = 0;
  while (homes.size() > kMostLanes) {
    without_lane += homes.back().pieces.size();
    homes.pop_back();
  }
  // Where it is still too much, coarser columns make it less; with one column there is a bar of each colour at most.
  for (double columns = kColumns;; columns /= 2) {
    not_drawn = without_lane;
    std::vector<Lane> lanes;
    for (const Home& home : homes) lanes.push_back(lane_of(home, span / columns, not_drawn));
    if (bars_in(lanes) > most && columns >= 4) continue;
    put_texts(trace, lanes);
    return lanes;
  }
}

}  // namespace kiln::report
