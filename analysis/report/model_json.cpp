// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/model.hpp"
#include "base/json.hpp"

namespace kiln::report {
namespace {

constexpr std::size_t kMaxListed = 200;  // per list

template <class Item, class Make>
Json cut(const std::vector<Item>& items, Make make) {
  Json all = Json::array();
  for (std::size_t i = 0; i < std::min(items.size(), kMaxListed); ++i) all.push_back(make(items[i]));
  return all;
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json or_null(const std::optional<std::size_t>& value) { return value ? Json(*value) : Json(nullptr); }

Json wait_object(const Wait& wait) {
  return {{"run", wait.run},   {"event", wait.event},    {"kind", to_string(wait.kind)},
          {"ms", wait.ms},     {"who", wait.who},        {"background", wait.background},
          {"unit", wait.unit}, {"at_ms", wait.start_ms}, {"why", wait.reason}};
}

Json steps_array(const UnitTimeline& timeline) {
  return cut(timeline.steps, [](const Phase& step) -> Json {
    return {{"step", to_string(step.kind)}, {"at_ms", step.start_ms}, {"ms", step.ms}};
  });
}

Json timeline_object(const UnitTimeline& timeline) {
  return {{"unit", timeline.unit},           {"target", timeline.target},
          {"kernel", timeline.kernel},       {"origin", timeline.origin},
          {"at_ms", timeline.start_ms},      {"total_ms", timeline.total_ms()},
          {"waited_ms", timeline.waited_ms}, {"launched_ms", or_null(timeline.launched_ms)},
          {"steps", steps_array(timeline)}};
}

Json miss_object(const Miss& miss) {
  return {{"event", miss.event}, {"unit", miss.unit}, {"target", miss.target},  {"at_ms", miss.at_ms},
          {"why", miss.reason},  {"end", miss.end},   {"cost_ms", miss.cost_ms}};
}

Json finding_object(const audit::Finding& finding) {
  return {{"severity", to_string(finding.rule->severity)},
          {"rule", finding.rule->name},
          {"operation", finding.operation},
          {"stage", finding.stage},
          {"text", finding.text},
          {"advice", finding.rule->advice},
          {"structural", finding.structural},
          {"count", finding.count},
          {"ms", finding.ms}};
}

Json problem_object(const Problem& problem) {
  return {{"event", problem.event},
          {"kind", problem.kind},
          {"unit", problem.unit},
          {"at_ms", problem.at_ms},
          {"message", problem.message}};
}

Json pass_object(const CachePass& pass) {
  return {{"event", pass.event}, {"kind", pass.kind},   {"system", pass.system}, {"text", pass.text},
          {"bytes", pass.bytes}, {"at_ms", pass.at_ms}, {"ms", pass.ms}};
}

Json skipped_object(const SkippedEntry& entry) {
  return {{"event", entry.event},
          {"system", entry.system},
          {"path", entry.path},
          {"state", entry.state},
          {"why", entry.reason}};
}

Json bar_object(const Bar& bar) {
  Json object = {{"category", to_string(bar.mark)},
                 {"event", bar.event},
                 {"count", bar.count},
                 {"at_ms", bar.start_ms},
                 {"end_ms", bar.end_ms},
                 {"kind", bar.kind},
                 {"ms", bar.ms}};
  const std::pair<const char*, const std::string*> texts[] = {
      {"unit", &bar.unit}, {"thread", &bar.thread}, {"origin", &bar.origin}, {"message", &bar.message}};
  for (const auto& [name, text] : texts) {
    if (!text->empty()) object[name] = *text;  // most bars have few of them, and there are thousands of bars
  }
  return object;
}

Json lane_object(const Lane& lane) {
  Json rows = Json::array();
  for (const std::vector<Bar>& row : lane.rows) {
    Json& bars = rows.emplace_back(Json::array());
    for (const Bar& bar : row) bars.push_back(bar_object(bar));
  }
  return {{"name", lane.name}, {"stream", lane.stream}, {"rows", std::move(rows)}};
}

Json run_object(const Run& run) {
  Json lanes = Json::array();
  for (const Lane& lane : run.lanes) lanes.push_back(lane_object(lane));
  Json tiers = Json::array();
  for (const Tier& tier : run.tiers) tiers.push_back({{"tier", tier.name}, {"count", tier.count}, {"ms", tier.ms}});
  return {{"file", run.file},
          {"label", run.label},
          {"process", run.process},
          {"command", run.command},
          {"date", run.date},
          {"events", run.events},
          {"dropped_events", run.dropped},
          {"unknown_events", run.not_understood},
          {"events_not_drawn", run.not_drawn},
          {"span_ms", run.span_ms},
          {"first_launch_ms", or_null(run.first_launch_ms)},
          {"first_result_ms", or_null(run.first_result_ms)},
          {"waited_ms", run.waited_ms},
          {"compiles", run.compiles},
          {"compile_ms", run.compile_ms},
          {"failed_compiles", run.failures},
          {"loads", run.loads},
          {"load_ms", run.load_ms},
          {"launches", run.launches},
          {"tiers", std::move(tiers)},
          {"first_call", run.first ? timeline_object(run.timelines[*run.first]) : Json(nullptr)},
          {"units", cut(run.timelines, timeline_object)},
          {"units_in_all", run.timelines.size()},
          {"misses", cut(run.misses, miss_object)},
          {"misses_in_all", run.misses.size()},
          {"troubles", cut(run.problems, problem_object)},
          {"troubles_in_all", run.problems.size()},
          {"caches", cut(run.passes, pass_object)},
          {"caches_in_all", run.passes.size()},
          {"skipped_entries", cut(run.skipped, skipped_object)},
          {"skipped_entries_in_all", run.skipped.size()},
          {"findings", cut(run.audit.findings, finding_object)},
          {"findings_in_all", run.audit.findings.size()},
          {"verdict", to_string(run.audit.verdict())},
          {"cause", run.audit.cause},
          {"change", run.audit.change},
          {"lanes", std::move(lanes)}};
}

Json comparison_object(const UnitComparison& unit, const Program& program, const Model& model) {
  Json cells = Json::array();
  for (std::size_t i = 0; i < unit.timelines.size(); ++i) {
    if (!unit.timelines[i]) {
      cells.push_back(nullptr);
      continue;
    }
    const UnitTimeline& timeline = model.runs[program.runs[i]].timelines[*unit.timelines[i]];
    cells.push_back({{"origin", timeline.origin}, {"work_ms", timeline.work_ms()}, {"steps", steps_array(timeline)}});
  }
  return {{"unit", unit.unit}, {"target", unit.target}, {"runs", std::move(cells)}};
}

Json program_object(const Program& program, const Model& model) {
  const auto compared = [&](const UnitComparison& unit) { return comparison_object(unit, program, model); };
  return {{"name", program.name},
          {"runs", program.runs},
          {"cold", or_null(program.cold)},
          {"warm", or_null(program.warm)},
          {"units", cut(program.units, compared)},
          {"units_in_all", program.units.size()}};
}

}  // namespace

std::string model_json(const Model& model, int indent) {
  Json programs = Json::array();
  for (const Program& program : model.programs) programs.push_back(program_object(program, model));
  Json runs = Json::array();
  for (const Run& run : model.runs) runs.push_back(run_object(run));
  const Json all = {{"programs", std::move(programs)},
                    {"waits", cut(model.waits, wait_object)},
                    {"waits_in_all", model.waits.size()},
                    {"runs", std::move(runs)}};
  return json_text(all, indent);
}

}  // namespace kiln::report
