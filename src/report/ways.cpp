// What happened to each unit from its request to its first launch.
#include <algorithm>
#include <unordered_map>

#include "report/model.hpp"

namespace kiln::report {

const char* to_string(Step::Kind kind) {
  constexpr const char* kNames[] = {"queue",     "claim", "find",  "compile", "publish",
                                    "unclaimed", "load",  "ready", "launch"};
  return kNames[static_cast<unsigned>(kind)];
}

const char* words_for(Step::Kind kind) {
  constexpr const char* kWords[] = {"queue and look-up", "another's compile",         "hit",  "compile",
                                    "publish",           "until it was to be loaded", "load", "until it was launched",
                                    "first launch"};
  return kWords[static_cast<unsigned>(kind)];
}

double Way::ms_of(Step::Kind kind) const {
  double ms = 0;
  for (const Step& step : steps) ms += step.kind == kind ? step.ms : 0;
  return ms;
}

namespace {

/// A way while it is put together. Events come in the order in which they ended.
class Walk {
 public:
  void take(const audit::RecordedEvent& event);
  bool empty() const { return way_.steps.empty() && !begun_; }
  Way finish() { return std::move(way_); }

 private:
  void begin(double at);
  /// From where the last step ended until `end`; the time before `start` was spent on `before`.
  void step(Step::Kind kind, double start, double end, Step::Kind before);
  void claim(double start, double end);
  double now() const { return way_.steps.empty() ? way_.start_ms : way_.steps.back().start_ms + way_.steps.back().ms; }

  Way way_;
  bool begun_ = false;
};

void Walk::begin(double at) {
  if (begun_ && at >= way_.start_ms) return;
  // Somebody asked before what is known so far: a caller that waits is told of when he is done.
  if (begun_ && !way_.steps.empty()) {
    Step& first = way_.steps.front();
    const double before = first.start_ms - at;
    if (first.kind == Step::Kind::Queue) {
      first = {Step::Kind::Queue, at, first.ms + before};
    } else {
      way_.steps.insert(way_.steps.begin(), {Step::Kind::Queue, at, before});
    }
  }
  way_.start_ms = at;
  begun_ = true;
}

void Walk::step(Step::Kind kind, double start, double end, Step::Kind before) {
  const double from = now();
  start = std::max(start, from);
  end = std::max(end, start);
  if (start > from) way_.steps.push_back({before, from, start - from});
  way_.steps.push_back({kind, start, end - start});
}

// Whoever waited for another's compile is told of it after he has found the result, which was at the end of the wait.
void Walk::claim(double start, double end) {
  std::optional<Step> found;
  if (!way_.steps.empty() && way_.steps.back().kind == Step::Kind::Find) {
    found = way_.steps.back();
    way_.steps.pop_back();
    if (!way_.steps.empty() && way_.steps.back().kind == Step::Kind::Queue) way_.steps.pop_back();
    end = found->start_ms;
  }
  step(Step::Kind::Claim, start, end, Step::Kind::Queue);
  if (found) step(Step::Kind::Find, found->start_ms, found->start_ms + found->ms, Step::Kind::Find);
}

void Walk::take(const audit::RecordedEvent& event) {
  if (way_.launched_ms) return;
  const Event& told = event.event;
  if (way_.unit.empty()) way_.unit = told.unit;
  if (way_.target.empty()) way_.target = told.target;
  const double start = event.end_ms - length_of(event);
  switch (told.kind) {
    case Event::Kind::Requested: begin(event.start_ms); return;
    case Event::Kind::HotCompile:
      begin(event.start_ms);
      way_.waited_ms = std::max(way_.waited_ms, told.ms);
      return;
    case Event::Kind::Miss: begin(event.start_ms); return;
    case Event::Kind::Hit:
      begin(start);
      way_.origin = told.origin;
      return step(Step::Kind::Find, start, event.end_ms, Step::Kind::Queue);
    case Event::Kind::Waited:
    case Event::Kind::LeaseWaited: begin(start); return claim(start, event.end_ms);
    case Event::Kind::Compiled:
      begin(start);
      way_.origin = "compiled";
      return step(Step::Kind::Compile, start, event.end_ms, Step::Kind::Queue);
    case Event::Kind::Published:
      begin(start);
      return step(Step::Kind::Publish, now(), event.end_ms, Step::Kind::Publish);
    case Event::Kind::Loaded: begin(start); return step(Step::Kind::Load, start, event.end_ms, Step::Kind::Unclaimed);
    case Event::Kind::Launched:
      begin(start);
      step(Step::Kind::Launch, start, event.end_ms, Step::Kind::Ready);
      way_.launched_ms = event.end_ms;
      way_.kernel = told.message;
      return;
    default: return;
  }
}

}  // namespace

std::vector<Way> ways_of(const audit::Trace& trace) {
  std::unordered_map<std::uint64_t, Walk> walks;
  for (const audit::RecordedEvent& event : trace.events) {
    if (event.event.flow != 0) walks[event.event.flow].take(event);
  }
  std::vector<Way> ways;
  for (auto& [flow, walk] : walks) {
    if (walk.empty()) continue;
    ways.push_back(walk.finish());
    ways.back().flow = flow;
  }
  std::sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) {
    return a.start_ms != b.start_ms ? a.start_ms < b.start_ms : a.flow < b.flow;
  });
  return ways;
}

}  // namespace kiln::report
