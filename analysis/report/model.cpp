// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/model.hpp"

#include <algorithm>
#include <unordered_map>

#include "analysis/report/jit_events.hpp"

namespace kiln::report {
namespace {

// Maximum number of bars on the page, about 300 bytes each.
constexpr std::size_t kMaxBars = 6000;

void add_tier(std::vector<Tier>& tiers, const std::string& name, double ms) {
  // Sort the tiers in lookup order (docs/ARCHITECTURE.md); unknown names come last.
  const auto rank = [](const std::string& tier) {
    constexpr const char* kOrder[] = {"memory", "bundle", "disk", "remote"};
    return tier == "compiled" ? 9 : std::find(std::begin(kOrder), std::end(kOrder), tier) - std::begin(kOrder);
  };
  auto place = std::find_if(tiers.begin(), tiers.end(), [&](const Tier& tier) { return tier.name == name; });
  if (place == tiers.end()) {
    place = std::find_if(tiers.begin(), tiers.end(), [&](const Tier& tier) { return rank(tier.name) > rank(name); });
    place = tiers.insert(place, Tier{name, 0, 0});
  }
  ++place->count;
  place->ms += ms;
}

// Returns true if the program got a result after a launch: a copy from the device, or a wait for a stream. A scalar
// that sizes an allocation is not a result, and a wait that only tracing causes is not part of the program.
bool is_result(const Event& event) {
  if (event.context.purpose == Purpose::AllocationSize || event.context.purpose == Purpose::Trace) return false;
  return event.kind == Event::Kind::Synchronized ||
         (event.kind == Event::Kind::Copied && event.message == "from the device");
}

void count(const audit::RecordedEvent& event, Run& run) {
  const Event& reported = event.event;
  run.span_ms = std::max(run.span_ms, event.end_ms);
  switch (reported.kind) {
    case Event::Kind::Hit:
      add_tier(run.tiers, reported.origin.empty() ? "unknown" : reported.origin, reported.ms);
      break;
    case Event::Kind::Compiled:
      ++run.compiles;
      run.compile_ms += reported.ms;
      add_tier(run.tiers, "compiled", reported.ms);
      break;
    case Event::Kind::CompileFailed: ++run.failures; break;
    case Event::Kind::Loaded:
      ++run.loads;
      run.load_ms += reported.ms;
      break;
    case Event::Kind::Launched:
    case Event::Kind::CalledCompiled:
      ++run.launches;
      run.first_launch_ms = std::min(run.first_launch_ms.value_or(event.end_ms), event.end_ms);
      break;
    default: break;
  }
  if (run.first_launch_ms && !run.first_result_ms && is_result(reported)) run.first_result_ms = event.end_ms;
  if (category_of(reported) == EventCategory::Problem) {
    run.problems.push_back({event.id, event_name(reported), subject_of(reported), event.start_ms, reported.message});
  }
}

void add_other_systems(const audit::Trace& trace, Run& run) {
  for (const audit::RecordedEvent& event : trace.events) {
    const Event& reported = event.event;
    if (reported.is(kEntrySkipped)) {
      run.skipped.push_back({event.id, reported.target, reported.unit, reported.selected, reported.message});
    } else if (reported.is(kCacheFilled) || reported.is(kCachePublished)) {
      run.passes.push_back(
          {event.id, reported.name, reported.unit, reported.message, reported.bytes, event.start_ms, reported.ms});
    }
  }
}

std::vector<Miss> misses_of(const audit::Trace& trace) {
  std::vector<Miss> misses;
  std::unordered_map<std::uint64_t, std::size_t> open;    // index by task id
  std::unordered_map<std::uint64_t, std::string> said;    // earlier message of a tier, by task id
  std::unordered_map<std::string, std::size_t> external;  // of another system, which compiles itself: index by key
  for (const audit::RecordedEvent& event : trace.events) {
    const Event& reported = event.event;
    const auto place = reported.task_id == 0 ? open.end() : open.find(reported.task_id);
    switch (reported.kind) {
      case Event::Kind::BundleIncompatible:
      case Event::Kind::RemoteRejected:
      case Event::Kind::EntryDropped:
        if (reported.task_id != 0) said[reported.task_id] = reported.message;
        break;
      case Event::Kind::Miss: {
        std::string reason = reported.message;
        if (const std::string& more = said[reported.task_id]; reported.task_id != 0 && !more.empty()) {
          reason += (reason.empty() ? "" : "; ") + more;
        }
        if (reported.task_id != 0) open[reported.task_id] = misses.size();
        if (reported.task_id == 0) external[reported.key] = misses.size();
        misses.push_back({event.id, reported.unit, reported.target, event.start_ms, std::move(reason), "", 0});
        break;
      }
      case Event::Kind::Published:
        if (const auto stored = external.find(reported.key); stored != external.end() && reported.task_id == 0) {
          misses[stored->second].unit = reported.unit;
          misses[stored->second].end = to_string(Event::Kind::Compiled);
          misses[stored->second].cost_ms = reported.ms;
        }
        break;
      case Event::Kind::Compiled:
      case Event::Kind::ClaimWaited:
      case Event::Kind::CompileFailed:
        if (place == open.end()) break;
        misses[place->second].end = reported.kind == Event::Kind::CompileFailed ? "failed" : to_string(reported.kind);
        misses[place->second].cost_ms = reported.ms;
        break;
      default: break;
    }
  }
  return misses;
}

std::optional<std::size_t> first_launched(const std::vector<UnitTimeline>& timelines) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < timelines.size(); ++i) {
    if (timelines[i].launched_ms && (!first || *timelines[i].launched_ms < *timelines[*first].launched_ms)) first = i;
  }
  return first;
}

Run run_of(const Source& source, std::size_t max_bars) {
  const audit::Trace& trace = source.trace;
  Run run;
  run.file = source.file;
  run.process = trace.process.empty() ? "unknown program" : trace.process;
  run.command = trace.command;
  run.date = trace.date;
  run.events = trace.events.size();
  run.dropped = trace.dropped;
  run.not_understood = trace.not_understood;
  for (const audit::RecordedEvent& event : trace.events) count(event, run);
  run.timelines = timelines_of(trace);
  run.first = first_launched(run.timelines);
  run.misses = misses_of(trace);
  add_other_systems(trace, run);
  run.lanes = lanes_of(trace, max_bars, run.not_drawn);
  run.audit = audit::run_audit(trace);
  return run;
}

}  // namespace

Model make_model(const std::vector<Source>& sources) {
  Model model;
  const std::size_t max_bars = kMaxBars / std::max<std::size_t>(1, sources.size());
  for (const Source& source : sources) {
    Run run = run_of(source, max_bars);
    std::vector<Wait> waits = waits_of(source.trace);
    run.waited_ms = total_wait_ms(waits);
    for (Wait& wait : waits) {
      wait.run = model.runs.size();
      model.waits.push_back(std::move(wait));
    }
    model.runs.push_back(std::move(run));
  }
  std::stable_sort(model.waits.begin(), model.waits.end(), [](const Wait& a, const Wait& b) { return a.ms > b.ms; });
  model.programs = programs_of(model.runs);
  return model;
}

}  // namespace kiln::report
