// SPDX-License-Identifier: Apache-2.0
// Builds the timeline of each unit from its request to its first launch.
#include <algorithm>
#include <unordered_map>

#include "analysis/report/model.hpp"

namespace kiln::report {

const char* to_string(Phase::Kind kind) {
  constexpr const char* kNames[] = {"queue",     "claim", "find",  "compile", "publish",
                                    "unclaimed", "load",  "ready", "launch"};
  return kNames[static_cast<unsigned>(kind)];
}

double UnitTimeline::work_ms() const {
  double ms = 0;
  for (const Phase& step : steps) {
    switch (step.kind) {
      case Phase::Kind::Claim:
      case Phase::Kind::Find:
      case Phase::Kind::Compile:
      case Phase::Kind::Publish:
      case Phase::Kind::Load: ms += step.ms; break;
      default: break;
    }
  }
  return ms;
}

namespace {

/// Builds the timeline of one unit. Events must be added in the order of their end. Not thread-safe.
class TimelineBuilder {
 public:
  void take(const audit::RecordedEvent& event);
  bool empty() const { return timeline_.steps.empty() && !begun_; }
  UnitTimeline finish() { return std::move(timeline_); }

 private:
  void begin(double at);
  /// Adds a phase from the end of the last one until `end`. The time before `start` is assigned to `before`.
  void step(Phase::Kind kind, double start, double end, Phase::Kind before);
  void claim(double start, double end);
  double now() const {
    return timeline_.steps.empty() ? timeline_.start_ms : timeline_.steps.back().start_ms + timeline_.steps.back().ms;
  }

  UnitTimeline timeline_;
  bool begun_ = false;
};

void TimelineBuilder::begin(double at) {
  if (begun_ && at >= timeline_.start_ms) return;
  // The request was earlier than the events so far, because the event of a waiting caller is emitted when it is done.
  if (begun_ && !timeline_.steps.empty()) {
    Phase& first = timeline_.steps.front();
    const double before = first.start_ms - at;
    if (first.kind == Phase::Kind::Queue) {
      first = {Phase::Kind::Queue, at, first.ms + before};
    } else {
      timeline_.steps.insert(timeline_.steps.begin(), {Phase::Kind::Queue, at, before});
    }
  }
  timeline_.start_ms = at;
  begun_ = true;
}

void TimelineBuilder::step(Phase::Kind kind, double start, double end, Phase::Kind before) {
  const double from = now();
  start = std::max(start, from);
  end = std::max(end, start);
  if (start > from) timeline_.steps.push_back({before, from, start - from});
  timeline_.steps.push_back({kind, start, end - start});
}

// The event of a wait for another compile is emitted after the hit that ended the wait. Moves that hit after the wait.
void TimelineBuilder::claim(double start, double end) {
  std::optional<Phase> found;
  if (!timeline_.steps.empty() && timeline_.steps.back().kind == Phase::Kind::Find) {
    found = timeline_.steps.back();
    timeline_.steps.pop_back();
    if (!timeline_.steps.empty() && timeline_.steps.back().kind == Phase::Kind::Queue) timeline_.steps.pop_back();
    end = found->start_ms;
  }
  step(Phase::Kind::Claim, start, end, Phase::Kind::Queue);
  if (found) step(Phase::Kind::Find, found->start_ms, found->start_ms + found->ms, Phase::Kind::Find);
}

void TimelineBuilder::take(const audit::RecordedEvent& event) {
  if (timeline_.launched_ms) return;
  const Event& reported = event.event;
  if (timeline_.unit.empty()) timeline_.unit = reported.unit;
  if (timeline_.target.empty()) timeline_.target = reported.target;
  const double start = event.end_ms - length_of(event);
  switch (reported.kind) {
    case Event::Kind::Requested: begin(event.start_ms); return;
    case Event::Kind::BlockingCompile:
      begin(event.start_ms);
      timeline_.waited_ms = std::max(timeline_.waited_ms, reported.ms);
      return;
    case Event::Kind::Miss: begin(event.start_ms); return;
    case Event::Kind::Hit:
      begin(start);
      timeline_.origin = reported.origin;
      return step(Phase::Kind::Find, start, event.end_ms, Phase::Kind::Queue);
    case Event::Kind::ClaimWaited:
    case Event::Kind::LeaseWaited: begin(start); return claim(start, event.end_ms);
    case Event::Kind::Compiled:
      begin(start);
      timeline_.origin = "compiled";
      return step(Phase::Kind::Compile, start, event.end_ms, Phase::Kind::Queue);
    case Event::Kind::Published:
      begin(start);
      return step(Phase::Kind::Publish, now(), event.end_ms, Phase::Kind::Publish);
    case Event::Kind::Loaded:
      begin(start);
      return step(Phase::Kind::Load, start, event.end_ms, Phase::Kind::WaitForLoad);
    case Event::Kind::Launched:
    case Event::Kind::CalledCompiled:
      begin(start);
      step(Phase::Kind::Launch, start, event.end_ms, Phase::Kind::Ready);
      timeline_.launched_ms = event.end_ms;
      timeline_.kernel = reported.message;
      return;
    default: return;
  }
}

}  // namespace

std::vector<UnitTimeline> timelines_of(const audit::Trace& trace) {
  std::unordered_map<std::uint64_t, TimelineBuilder> walks;
  for (const audit::RecordedEvent& event : trace.events) {
    if (event.event.task_id != 0) walks[event.event.task_id].take(event);
  }
  std::vector<UnitTimeline> timelines;
  for (auto& [flow, walk] : walks) {
    if (walk.empty()) continue;
    timelines.push_back(walk.finish());
    timelines.back().flow = flow;
  }
  std::sort(timelines.begin(), timelines.end(), [](const UnitTimeline& a, const UnitTimeline& b) {
    return a.start_ms != b.start_ms ? a.start_ms < b.start_ms : a.flow < b.flow;
  });
  return timelines;
}

}  // namespace kiln::report
