#include "base/json.hpp"
#include "report/model.hpp"

namespace kiln::report {
namespace {

constexpr std::size_t kMostListed = 200;  // of each list

template <class Item, class Make>
Json cut(const std::vector<Item>& items, Make make) {
  Json all = Json::array();
  for (std::size_t i = 0; i < std::min(items.size(), kMostListed); ++i) all.push_back(make(items[i]));
  return all;
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }
Json or_null(const std::optional<std::size_t>& value) { return value ? Json(*value) : Json(nullptr); }

Json wait_object(const Wait& wait) {
  return {{"run", wait.run},   {"event", wait.event},    {"kind", to_string(wait.kind)},
          {"ms", wait.ms},     {"who", wait.who},        {"background", wait.background},
          {"unit", wait.unit}, {"at_ms", wait.start_ms}, {"why", wait.why}};
}

Json way_object(const Way& way) {
  Json steps = cut(way.steps, [](const Step& step) -> Json {
    return {{"step", to_string(step.kind)}, {"at_ms", step.start_ms}, {"ms", step.ms}};
  });
  return {{"unit", way.unit},           {"target", way.target},
          {"kernel", way.kernel},       {"origin", way.origin},
          {"at_ms", way.start_ms},      {"total_ms", way.total_ms()},
          {"waited_ms", way.waited_ms}, {"launched_ms", or_null(way.launched_ms)},
          {"steps", std::move(steps)}};
}

Json miss_object(const Miss& miss) {
  return {{"event", miss.event}, {"unit", miss.unit}, {"target", miss.target},  {"at_ms", miss.at_ms},
          {"why", miss.why},     {"end", miss.end},   {"cost_ms", miss.cost_ms}};
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

Json trouble_object(const Trouble& trouble) {
  return {{"event", trouble.event},
          {"kind", to_string(trouble.kind)},
          {"unit", trouble.unit},
          {"at_ms", trouble.at_ms},
          {"message", trouble.message}};
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
          {"units", cut(run.ways, way_object)},
          {"units_in_all", run.ways.size()},
          {"misses", cut(run.misses, miss_object)},
          {"misses_in_all", run.misses.size()},
          {"troubles", cut(run.troubles, trouble_object)},
          {"troubles_in_all", run.troubles.size()},
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
