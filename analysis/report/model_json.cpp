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

Json timeline_object(const UnitTimeline& timeline) {
  Json steps = cut(timeline.steps, [](const Phase& step) -> Json {
    return {{"step", to_string(step.kind)}, {"at_ms", step.start_ms}, {"ms", step.ms}};
  });
  return {{"unit", timeline.unit},           {"target", timeline.target},
          {"kernel", timeline.kernel},       {"origin", timeline.origin},
          {"at_ms", timeline.start_ms},      {"total_ms", timeline.total_ms()},
          {"waited_ms", timeline.waited_ms}, {"launched_ms", or_null(timeline.launched_ms)},
          {"steps", std::move(steps)}};
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
          {"kind", to_string(problem.kind)},
          {"unit", problem.unit},
          {"at_ms", problem.at_ms},
          {"message", problem.message}};
}

Json run_object(const Run& run) {
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
          {"waited_ms", run.waited_ms},
          {"compiles", run.compiles},
          {"compile_ms", run.compile_ms},
          {"failed_compiles", run.failures},
          {"loads", run.loads},
          {"load_ms", run.load_ms},
          {"launches", run.launches},
          {"tiers", std::move(tiers)},
          {"first", or_null(run.first)},
          {"units", cut(run.timelines, timeline_object)},
          {"units_in_all", run.timelines.size()},
          {"misses", cut(run.misses, miss_object)},
          {"misses_in_all", run.misses.size()},
          {"troubles", cut(run.problems, problem_object)},
          {"troubles_in_all", run.problems.size()},
          {"findings", cut(run.audit.findings, finding_object)},
          {"cause", run.audit.cause},
          {"change", run.audit.change}};
}

}  // namespace

std::string model_json(const Model& model, int indent) {
  Json programs = Json::array();
  for (const Program& each : model.programs) {
    programs.push_back(
        {{"name", each.name}, {"runs", each.runs}, {"cold", or_null(each.cold)}, {"warm", or_null(each.warm)}});
  }
  const Json all = {{"programs", std::move(programs)},
                    {"waits", cut(model.waits, wait_object)},
                    {"waits_in_all", model.waits.size()},
                    {"runs", cut(model.runs, run_object)}};
  return json_text(all, indent);
}

}  // namespace kiln::report
