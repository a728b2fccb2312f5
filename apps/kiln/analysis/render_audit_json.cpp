#include "apps/kiln/analysis/render_audit_json.hpp"

#include <algorithm>

#include "apps/kiln/analysis/audit_source.hpp"
#include "apps/kiln/output/json_common.hpp"

namespace kiln::cli {

static Json to_json(const audit::DispatchCounts& counts) {
  return {{"total", counts.total},
          {"gpu", counts.on_device},
          {"cpu", counts.on_processor},
          {"fallback", counts.fallbacks},
          {"acceleration_rate", rounded(counts.acceleration())}};
}

static Json to_json(const audit::Finding& finding) {
  return {{"severity", to_string(finding.rule->severity)},
          {"rule", finding.rule->name},
          {"step", static_cast<int>(finding.rule->step)},
          {"question", to_string(finding.rule->step)},
          {"operation", finding.operation},
          {"stage", finding.stage},
          {"subject", finding.subject},
          {"structural", finding.structural},
          {"text", finding.text},
          {"advice", finding.rule->advice},
          {"dispatches", finding.dispatches.size()},
          {"events", finding.events},
          {"count", finding.count},
          {"bytes", finding.bytes},
          {"ms", rounded(finding.ms)},
          {"at_ms", rounded(finding.first_ms)}};
}

static Json to_json(audit::Report::StayedOnDevice stayed) {
  if (stayed == audit::Report::StayedOnDevice::NotApplicable) return nullptr;
  return stayed == audit::Report::StayedOnDevice::Yes;
}

static Json to_json(const audit::Selection& selection) {
  return {{"operation", selection.operation},
          {"requested", selection.requested},
          {"selected", selection.selected},
          {"reason", selection.reason},
          {"count", selection.count}};
}

static Json to_json(const audit::StageSum& stage) {
  return {{"operation", stage.operation},
          {"stage", stage.stage},
          {"where", stage.where},
          {"runs", stage.runs},
          {"ms", rounded(stage.ms)}};
}

static Json to_json(const audit::DeviceUsage::Fallback& fallback) {
  return {{"operation", fallback.operation}, {"reason", fallback.reason}, {"count", fallback.count}};
}

std::string audit_json(const audit::Report& report, const std::string& path, const source::SourceReport* sources) {
  Json decisions = Json::array();
  for (const audit::Selection& each : report.selections) decisions.push_back(to_json(each));
  Json stages = Json::array();
  for (const audit::StageSum& each : report.longest) stages.push_back(to_json(each));
  Json findings = Json::array();
  for (const audit::Finding& each : report.findings) findings.push_back(to_json(each));
  Json targets = Json::array();
  for (std::size_t i = 0; i < std::min<std::size_t>(3, report.findings.size()); ++i) {
    targets.push_back(report.findings[i].rule->name);
  }
  const auto structural = std::count_if(report.findings.begin(), report.findings.end(),
                                        [](const audit::Finding& finding) { return finding.structural; });
  Json all = {{"trace", path},
              {"clean", report.clean()},
              {"worst", report.clean() ? Json(nullptr) : Json(to_string(report.worst()))},
              {"findings", findings},
              {"structural", structural},
              {"incidental", static_cast<std::ptrdiff_t>(report.findings.size()) - structural},
              {"targets", targets},
              {"command", report.command},
              {"date", report.date},
              {"devices", report.devices},
              {"rows", report.rows},
              {"decisions", decisions},
              {"stayed_on_device", to_json(report.stayed)},
              {"bytes_in", report.bytes_in},
              {"bytes_out", report.bytes_out},
              {"longest_stages", stages},
              {"stages_synchronized", report.stages_synchronized},
              {"dispatches", to_json(report.counts)},
              {"cause", report.cause},
              {"change", report.change}};
  if (sources != nullptr) all["source"] = source_json(*sources, &report);
  return text_of(all);
}

std::string device_usage_json(const audit::DeviceUsage& usage) {
  Json operations = Json::array();
  for (const auto& [name, counts] : usage.operations) {
    Json each = to_json(counts);
    each["operation"] = name;
    operations.push_back(std::move(each));
  }
  Json fallbacks = Json::array();
  for (const audit::DeviceUsage::Fallback& each : usage.fallbacks) fallbacks.push_back(to_json(each));
  return text_of({{"traces", usage.traces},
                  {"dispatches", to_json(usage.counts)},
                  {"operations", operations},
                  {"fallbacks", fallbacks},
                  {"dropped_events", usage.dropped}});
}

}  // namespace kiln::cli
