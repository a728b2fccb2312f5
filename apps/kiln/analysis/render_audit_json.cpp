// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/analysis/render_audit_json.hpp"

#include <algorithm>

#include "apps/kiln/analysis/audit_source.hpp"
#include "apps/kiln/output/json_common.hpp"

namespace kiln::cli {

static Json to_json(const audit::DispatchCounts& counts) {
  return {{"total", counts.total},
          {"gpu", counts.on_device},
          {"cpu_device", counts.on_cpu_device},
          {"cpu", counts.on_processor},
          {"undeclared", counts.undeclared},
          {"fallback", counts.fallbacks},
          {"acceleration_rate", rounded(counts.acceleration())}};
}

static Json to_json(const audit::Finding& finding) {
  return {{"severity", to_string(finding.rule->severity)},
          {"rule", finding.rule->name},
          {"blocker", is_blocker(finding)},
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
  using Stayed = audit::Report::StayedOnDevice;
  if (stayed == Stayed::NotApplicable || stayed == Stayed::Unclear) return nullptr;
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

static Json to_json(const audit::Target& target) {
  return {{"rule", target.rule->name},
          {"severity", to_string(target.rule->severity)},
          {"operation", target.operation},
          {"stage", target.stage},
          {"fix", target.rule->advice}};
}

static Json to_json(const audit::MissingEvidence& missing) {
  return {{"what", missing.what}, {"action", missing.action}, {"decisive", missing.decisive}};
}

static Json to_json(const audit::HostReads& reads) {
  return {{"use", to_string(reads.use)}, {"operation", reads.operation}, {"stage", reads.stage},
          {"count", reads.count},        {"bytes", reads.bytes},         {"first_event", reads.first_event}};
}

static Json to_json(const audit::WaitSum& sum) {
  Json all = {{"count", sum.count}, {"ms", rounded(sum.ms)}};
  if (sum.count != 0) {
    all["first_event"] = sum.first_event;
    all["operation"] = sum.operation;
    all["stage"] = sum.stage;
  }
  return all;
}

static Json to_json(const audit::OperationSum& sum) {
  return {{"operation", sum.operation}, {"implicit", sum.implicit},        {"runs", sum.runs},
          {"gpu", sum.on_device},       {"cpu_device", sum.on_cpu_device}, {"cpu", sum.on_processor},
          {"rows", sum.rows},           {"launches", sum.launches},        {"waits", sum.waits},
          {"bytes_in", sum.bytes_in},   {"bytes_out", sum.bytes_out},      {"shape", sum.shape},
          {"shapes", sum.shapes}};
}

static Json to_json(const audit::Change& change) {
  return {{"what", to_string(change.kind)},
          {"direction", to_string(change.direction)},
          {"operation", change.operation},
          {"stage", change.stage},
          {"rule", change.rule == nullptr ? Json(nullptr) : Json(change.rule->name)},
          {"severity", change.rule == nullptr ? Json(nullptr) : Json(to_string(change.rule->severity))},
          {"before", rounded(change.before)},
          {"after", rounded(change.after)},
          {"text", change.text}};
}

static Json to_json(const audit::DeviceUsage::Fallback& fallback) {
  return {{"operation", fallback.operation}, {"reason", fallback.reason}, {"count", fallback.count}};
}

template <class Items>
static Json list_of(const Items& items) {
  Json list = Json::array();
  for (const auto& each : items) list.push_back(to_json(each));
  return list;
}

std::string audit_json(const audit::Report& report, const std::string& path, const source::SourceReport* sources) {
  const auto structural = std::count_if(report.findings.begin(), report.findings.end(),
                                        [](const audit::Finding& finding) { return finding.structural; });
  const audit::Waits& waits = report.waits;
  Json all = {
      {"trace", path},
      {"format", to_string(report.format)},
      {"verdict", to_string(report.verdict())},
      {"clean", report.clean()},
      {"worst", report.findings.empty() ? Json(nullptr) : Json(to_string(report.worst()))},
      {"findings", list_of(report.findings)},
      {"structural", structural},
      {"incidental", static_cast<std::ptrdiff_t>(report.findings.size()) - structural},
      {"targets", list_of(report.targets)},
      {"missing", list_of(report.missing)},
      {"command", report.command},
      {"date", report.date},
      {"devices", report.devices},
      {"rows", report.rows},
      {"decisions", list_of(report.selections)},
      {"stayed_on_device", to_json(report.stayed)},
      {"bytes_in", report.bytes_in},
      {"bytes_out", report.bytes_out},
      {"launches", {{"gpu", report.launches_on_gpu}, {"cpu_device", report.launches_on_cpu_device}}},
      {"longest_stages", list_of(report.longest)},
      {"stages_synchronized", report.stages_synchronized},
      {"dispatches", to_json(report.counts)},
      {"operations", list_of(report.operations)},
      {"waits",
       {{"caller", to_json(waits.caller)}, {"wrapper", to_json(waits.wrapper)}, {"tracing", to_json(waits.tracing)}}},
      {"reads", list_of(report.reads)},
      {"cpu_shaped", {{"answer", to_string(report.cpu_shaped)}, {"evidence", report.cpu_shaped_evidence}}},
      {"cause", report.cause},
      {"change", report.change}};
  if (sources != nullptr) all["source"] = source_json(*sources, &report);
  return text_of(all);
}

std::string comparison_json(const audit::Comparison& comparison, const audit::Report& before,
                            const audit::Report& after, const std::vector<std::string>& paths) {
  const auto side = [](const audit::Report& report, const std::string& path) {
    return Json{{"trace", path}, {"verdict", to_string(report.verdict())}, {"missing", list_of(report.missing)}};
  };
  return text_of({{"before", side(before, paths[0])},
                  {"after", side(after, paths[1])},
                  {"regressed", comparison.regressed()},
                  {"changes", list_of(comparison.changes)},
                  {"only_before", comparison.only_before},
                  {"only_after", comparison.only_after},
                  {"other_rows", comparison.other_rows},
                  {"other_launches", comparison.other_launches}});
}

std::string device_usage_json(const audit::DeviceUsage& usage) {
  Json operations = Json::array();
  for (const auto& [name, counts] : usage.operations) {
    Json each = to_json(counts);
    each["operation"] = name;
    operations.push_back(std::move(each));
  }
  return text_of({{"traces", usage.traces},
                  {"dispatches", to_json(usage.counts)},
                  {"operations", operations},
                  {"fallbacks", list_of(usage.fallbacks)},
                  {"dropped_events", usage.dropped}});
}

}  // namespace kiln::cli
