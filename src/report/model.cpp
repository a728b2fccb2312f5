#include "report/model.hpp"

#include <algorithm>
#include <unordered_map>

namespace kiln::report {
namespace {

// Of the whole page: some 300 bytes each.
constexpr std::size_t kMostBars = 6000;

void add_tier(std::vector<Tier>& tiers, const std::string& name, double ms) {
  // As they are asked, docs/ARCHITECTURE.md; names that are not ours come last.
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

void count(const audit::RecordedEvent& event, Run& run) {
  const Event& told = event.event;
  run.span_ms = std::max(run.span_ms, event.end_ms);
  switch (told.kind) {
    case Event::Kind::Hit: add_tier(run.tiers, told.origin.empty() ? "unknown" : told.origin, told.ms); break;
    case Event::Kind::Compiled:
      ++run.compiles;
      run.compile_ms += told.ms;
      add_tier(run.tiers, "compiled", told.ms);
      break;
    case Event::Kind::CompileFailed: ++run.failures; break;
    case Event::Kind::Loaded:
      ++run.loads;
      run.load_ms += told.ms;
      break;
    case Event::Kind::Launched:
      ++run.launches;
      run.first_launch_ms = std::min(run.first_launch_ms.value_or(event.end_ms), event.end_ms);
      break;
    default: break;
  }
  if (mark_of(told.kind) == Mark::Trouble) {
    run.troubles.push_back({event.id, told.kind, subject_of(told), event.start_ms, told.message});
  }
}

std::vector<Miss> misses_of(const audit::Trace& trace) {
  std::vector<Miss> misses;
  std::unordered_map<std::uint64_t, std::size_t> open;  // by flow
  std::unordered_map<std::uint64_t, std::string> said;  // what a tier said before, likewise
  for (const audit::RecordedEvent& event : trace.events) {
    const Event& told = event.event;
    const auto place = told.flow == 0 ? open.end() : open.find(told.flow);
    switch (told.kind) {
      case Event::Kind::BundleUnfit:
      case Event::Kind::RemoteRefused:
      case Event::Kind::EntryDropped:
        if (told.flow != 0) said[told.flow] = told.message;
        break;
      case Event::Kind::Miss: {
        std::string why = told.message;
        if (const std::string& more = said[told.flow]; told.flow != 0 && !more.empty()) {
          why += (why.empty() ? "" : "; ") + more;
        }
        if (told.flow != 0) open[told.flow] = misses.size();
        misses.push_back({event.id, told.unit, told.target, event.start_ms, std::move(why), "", 0});
        break;
      }
      case Event::Kind::Compiled:
      case Event::Kind::Waited:
      case Event::Kind::CompileFailed:
        if (place == open.end()) break;
        misses[place->second].end = told.kind == Event::Kind::CompileFailed ? "failed" : to_string(told.kind);
        misses[place->second].cost_ms = told.ms;
        break;
      default: break;
    }
  }
  return misses;
}

std::optional<std::size_t> first_launched(const std::vector<Way>& ways) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (ways[i].launched_ms && (!first || *ways[i].launched_ms < *ways[*first].launched_ms)) first = i;
  }
  return first;
}

Run run_of(const Source& source, std::size_t most_bars) {
  const audit::Trace& trace = source.trace;
  Run run;
  run.file = source.file;
  run.process = trace.process.empty() ? "a program" : trace.process;
  run.command = trace.command;
  run.date = trace.date;
  run.events = trace.events.size();
  run.dropped = trace.dropped;
  run.not_understood = trace.not_understood;
  for (const audit::RecordedEvent& event : trace.events) count(event, run);
  run.ways = ways_of(trace);
  run.first = first_launched(run.ways);
  run.misses = misses_of(trace);
  run.lanes = lanes_of(trace, most_bars, run.not_drawn);
  run.audit = audit::examine(trace);
  return run;
}

}  // namespace

Model make_model(const std::vector<Source>& sources) {
  Model model;
  const std::size_t most_bars = kMostBars / std::max<std::size_t>(1, sources.size());
  for (const Source& source : sources) {
    Run run = run_of(source, most_bars);
    std::vector<Wait> waits = waits_of(source.trace);
    run.waited_ms = stood_still(waits);
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
