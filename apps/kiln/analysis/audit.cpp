// kiln audit: analyzes the code path recorded in a trace and prints the findings first.
#include "analysis/audit/audit.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/kiln/analysis/audit_source.hpp"
#include "apps/kiln/analysis/render_audit_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"

namespace kiln::cli {
namespace {

constexpr std::pair<audit::Severity, ExitCode> kCodes[] = {{audit::Severity::Low, kAuditLow},
                                                           {audit::Severity::Medium, kAuditMedium},
                                                           {audit::Severity::High, kAuditHigh},
                                                           {audit::Severity::Blocking, kAuditBlocking}};

int code_of(const audit::Report& report, const std::string& fail_on) {
  if (report.clean()) return kSuccess;
  const audit::Severity worst = report.worst();
  for (const auto& [severity, code] : kCodes) {
    std::string name = to_string(severity);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name == fail_on && worst < severity) return kSuccess;
  }
  return kCodes[static_cast<std::size_t>(worst)].second;
}

Text severity_text(audit::Severity severity, const Console& console) {
  const std::string name = to_string(severity);
  if (severity == audit::Severity::Blocking || severity == audit::Severity::High) return console.red(name);
  return severity == audit::Severity::Medium ? console.yellow(name) : Text(name);
}

std::string evidence_text(const audit::Finding& finding) {
  std::string text = finding.structural ? "structural" : "incidental";
  if (!finding.dispatches.empty()) text += ", in " + format_count(finding.dispatches.size(), "run", "runs");
  if (finding.events.empty()) return text;
  text += finding.count == 1 ? "; event " : "; events ";
  text += join_strings(finding.events, [](std::uint64_t id) { return std::to_string(id); });
  if (finding.count > finding.events.size()) text += " … (" + std::to_string(finding.count) + ")";
  text += " (first at " + time_text(finding.first_ms) + ")";
  if (finding.bytes != 0) text += ", " + format_bytes(finding.bytes);
  if (finding.ms > 0) text += ", " + time_text(finding.ms) + " of host time";
  return text;
}

void print_findings(const audit::Report& report, Console& console) {
  for (const audit::Finding& finding : report.findings) {
    std::string where = finding.operation.empty() ? "" : "  " + printable(finding.operation);
    if (!finding.stage.empty()) where += ", stage " + printable(finding.stage);
    console.print(severity_text(finding.rule->severity, console) + "  " + console.bold(finding.rule->name) + where +
                  "\n  " + printable(finding.text) + "\n  " + evidence_text(finding) +
                  "\n  fix: " + finding.rule->advice + "\n\n");
  }
}

Text summary_text(const audit::Report& report, const Console& console) {
  if (report.clean()) return console.green("clean") + ": no findings";
  const std::size_t count = report.findings.size();
  const auto structural = std::count_if(report.findings.begin(), report.findings.end(),
                                        [](const audit::Finding& finding) { return finding.structural; });
  std::string text = format_count(count, "finding", "findings") + ", " + std::to_string(structural) +
                     " structural and " + std::to_string(static_cast<std::ptrdiff_t>(count) - structural) +
                     " incidental; start with: ";
  for (std::size_t i = 0; i < std::min<std::size_t>(3, count); ++i) {
    text += (i == 0 ? "" : ", then ") + std::string(report.findings[i].rule->name);
  }
  return text;
}

std::string stayed_text(const audit::Report& report) {
  const std::string copied = "; runs copied " + format_bytes(report.bytes_in) + " to the device and " +
                             format_bytes(report.bytes_out) + " from it";
  switch (report.stayed) {
    case audit::Report::StayedOnDevice::NotApplicable: return "nothing ran on a device";
    case audit::Report::StayedOnDevice::Yes: return "yes" + copied;
    case audit::Report::StayedOnDevice::No: return "no" + copied;
  }
  return "";
}

std::string runs_text(const audit::DispatchCounts& counts) {
  const double percent = std::round(counts.acceleration() * 1000) / 10;
  std::string rate = std::to_string(percent);
  rate.erase(rate.find('.') + 2);
  return std::to_string(counts.total) + ": " + std::to_string(counts.on_device) + " on a device, " +
         std::to_string(counts.on_processor) + " on the CPU, " +
         format_count(counts.fallbacks, "fallback", "fallbacks") + "; acceleration rate " + rate + " %";
}

void print_facts(const audit::Report& report, Console& console) {
  std::vector<std::vector<std::string>> rows = {
      {"command", report.command.empty() ? "not recorded" : printable(report.command)},
      {"date", printable(report.date)},
      {"device", report.devices.empty() ? "none" : printable(join_strings(report.devices))},
      {"rows", std::to_string(report.rows) + " in the largest run"}};
  for (const audit::Selection& each : report.selections) {
    rows.push_back(
        {"decision", printable(each.operation + ": " + each.requested + " requested, " + each.selected + " selected" +
                               (each.count > 1 ? " " + std::to_string(each.count) + " times" : "") +
                               (each.reason.empty() ? "" : " (" + each.reason + ")"))});
  }
  rows.push_back({"stayed", stayed_text(report)});
  for (const audit::StageSum& each : report.longest) {
    rows.push_back({"stage", printable(each.operation + ", " + each.stage) + ": " + time_text(each.ms) + " on " +
                                 printable(each.where) +
                                 (each.runs > 1 ? " in " + std::to_string(each.runs) + " runs" : "")});
  }
  if (!report.longest.empty() && report.counts.on_device > 0 && !report.stages_synchronized) {
    rows.push_back({"", "stage times are host times; KILN_TIME_STAGES=1 includes device times"});
  }
  rows.push_back({"runs", runs_text(report.counts)});
  console.print(table_text(rows, "  ") + '\n');
}

}  // namespace

int audit_command(const Arguments& arguments, Console& console) {
  if (arguments.files.empty()) return audit_source_command(arguments, console);
  const std::string& path = arguments.files.front();
  const Result<audit::Trace> trace = audit::read_trace(path);
  if (!trace) return report(trace.error(), console);
  const audit::Report found = audit::run_audit(*trace);
  std::optional<source::SourceReport> sources;
  if (!arguments.source.empty()) {
    Result<source::SourceReport> searched = search_sources(arguments.source, &*trace, &found);
    if (!searched) return report(searched.error(), console);
    sources = std::move(*searched);
  }
  if (arguments.json) {
    console.print(audit_json(found, path, sources ? &*sources : nullptr));
  } else {
    print_findings(found, console);
    console.print(summary_text(found, console) + "\n\n");
    print_facts(found, console);
    console.print("What makes this path behave like CPU code?\n  " + printable(found.cause) +
                  "\nWhat is the smallest structural change that moves it back?\n  " + printable(found.change));
    if (sources) {
      console.print("\n");
      print_sources(*sources, &found, console);
    }
  }
  return code_of(found, arguments.fail_on);
}

}  // namespace kiln::cli
