// SPDX-License-Identifier: Apache-2.0
// kiln audit: analyzes the code path recorded in a trace and prints the findings first.
#include "analysis/audit/audit.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/kiln/analysis/audit_compare.hpp"
#include "apps/kiln/analysis/audit_source.hpp"
#include "apps/kiln/analysis/render_audit_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "base/error.hpp"

namespace kiln::cli {
namespace {

constexpr std::size_t kMaxListed = 12;  // places of reads, and shapes

constexpr std::pair<audit::Severity, ExitCode> kCodes[] = {{audit::Severity::Low, kAuditLow},
                                                           {audit::Severity::Medium, kAuditMedium},
                                                           {audit::Severity::High, kAuditHigh},
                                                           {audit::Severity::Blocking, kAuditBlocking}};

int code_of(const audit::Report& report, const std::string& fail_on) {
  const int code = report.findings.empty() ? kSuccess : severity_code(report.worst(), fail_on);
  return code == kSuccess && report.lacks_evidence() ? kAuditInconclusive : code;
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

void print_finding(const audit::Finding& finding, Console& console) {
  std::string where = finding.operation.empty() ? "" : "  " + printable(finding.operation);
  if (!finding.stage.empty()) where += ", stage " + printable(finding.stage);
  console.print(severity_text(finding.rule->severity, console) + "  " + console.bold(finding.rule->name) + where +
                "\n  " + printable(finding.text) + "\n  " + evidence_text(finding) +
                "\n  fix: " + finding.rule->advice + "\n\n");
}

// Prints the blockers apart from the cleanups, each in the order in which to fix them.
void print_findings(const audit::Report& report, Console& console) {
  for (const bool blockers : {true, false}) {
    bool any = false;
    for (const audit::Finding& finding : report.findings) {
      if (is_blocker(finding) != blockers) continue;
      if (!any) console.print(blockers ? "Blockers: they limit the path on a GPU\n\n" : "Cleanups\n\n");
      any = true;
      print_finding(finding, console);
    }
  }
}

Text summary_text(const audit::Report& report, const Console& console) {
  switch (report.verdict()) {
    case audit::Verdict::Clean: return console.green("clean") + ": no findings";
    case audit::Verdict::Inconclusive: return console.yellow("inconclusive") + ": no findings, but evidence is missing";
    case audit::Verdict::Findings: break;
  }
  const std::size_t count = report.findings.size();
  const auto structural = std::count_if(report.findings.begin(), report.findings.end(),
                                        [](const audit::Finding& finding) { return finding.structural; });
  std::string text = format_count(count, "finding", "findings") + ", " + std::to_string(structural) +
                     " structural and " + std::to_string(static_cast<std::ptrdiff_t>(count) - structural) +
                     " incidental; start with: ";
  for (std::size_t i = 0; i < report.targets.size(); ++i) {
    text += (i == 0 ? "" : ", then ") + std::string(report.targets[i].rule->name);
  }
  return text;
}

std::string missing_text(const audit::Report& report) {
  std::string text;
  for (const audit::MissingEvidence& each : report.missing) {
    text += "missing: " + printable(each.what) + "\n  to do: " + printable(each.action) + '\n';
  }
  return text;
}

std::string stayed_text(const audit::Report& report) {
  const std::string copied = "; " + format_bytes(report.bytes_in) + " were copied to the device and " +
                             format_bytes(report.bytes_out) + " from it";
  switch (report.stayed) {
    case audit::Report::StayedOnDevice::NotApplicable: return "nothing was launched on a device";
    case audit::Report::StayedOnDevice::Yes: return "yes" + copied;
    case audit::Report::StayedOnDevice::Unclear:
      return "unclear: " + format_count(report.unclear_reads(), "read", "reads") + " between launches" + copied;
    case audit::Report::StayedOnDevice::No: return "no" + copied;
  }
  return "";
}

std::string runs_text(const audit::Report& report) {
  const audit::DispatchCounts& counts = report.counts;
  const std::string undeclared = counts.undeclared == 0
                                     ? ""
                                     : format_count(counts.undeclared, "implicit operation", "implicit operations") +
                                           " (work on a thread and a stream without a declared operation)";
  if (counts.total == 0) return "no operation was declared" + (undeclared.empty() ? "" : "; " + undeclared);
  const double percent = std::round(counts.acceleration() * 1000) / 10;
  std::string rate = std::to_string(percent);
  rate.erase(rate.find('.') + 2);
  return std::to_string(counts.total) + ": " + std::to_string(counts.on_device) + " on a GPU, " +
         (counts.on_cpu_device == 0 ? "" : std::to_string(counts.on_cpu_device) + " on a CPU device, ") +
         std::to_string(counts.on_processor) + " on the CPU, " +
         format_count(counts.fallbacks, "fallback", "fallbacks") + "; acceleration rate " + rate + " %" +
         (undeclared.empty() ? "" : "; and " + undeclared);
}

std::string place_text(const std::string& operation, const std::string& stage) {
  std::string text = operation.empty() ? "" : " in " + printable(operation);
  return stage.empty() ? text : text + ", stage " + printable(stage);
}

std::string wait_text(const char* whose, const audit::WaitSum& sum) {
  if (sum.count == 0) return std::string("0 ") + whose;
  return std::to_string(sum.count) + ' ' + whose + " (" + time_text(sum.ms) + ", first: event " +
         std::to_string(sum.first_event) + place_text(sum.operation, sum.stage) + ")";
}

void add_evidence_rows(const audit::Report& report, std::vector<std::vector<std::string>>& rows) {
  rows.push_back(
      {"waits", wait_text("by the caller", report.waits.caller) + ", " +
                    wait_text("by a wrapper", report.waits.wrapper) +
                    (report.waits.tracing.count == 0 ? "" : ", " + wait_text("to measure", report.waits.tracing))});
  std::size_t listed = 0;
  for (const audit::HostReads& each : report.reads) {
    if (++listed > kMaxListed) {
      rows.push_back(
          {"", "… and " + std::to_string(report.reads.size() - kMaxListed) + " more places; --json lists all"});
      break;
    }
    std::string use = to_string(each.use);
    std::replace(use.begin(), use.end(), '_', ' ');
    rows.push_back({"reads", use + ": " + format_count(each.count, "read", "reads") + ", " + format_bytes(each.bytes) +
                                 place_text(each.operation, each.stage) + " (first: event " +
                                 std::to_string(each.first_event) + ")"});
  }
  listed = 0;
  for (const audit::OperationSum& each : report.operations) {
    if (each.shape.empty() || ++listed > kMaxListed) continue;
    rows.push_back({"shape", printable(each.operation + ": " + each.shape) +
                                 (each.shapes > 1 ? " (and " + std::to_string(each.shapes - 1) + " other)" : "")});
  }
}

void print_facts(const audit::Report& report, Console& console) {
  std::vector<std::vector<std::string>> rows = {
      {"command", report.command.empty() ? "not recorded" : printable(report.command)},
      {"date", report.date.empty() ? "not recorded" : printable(report.date)},
      {"device", report.devices.empty() ? "none" : printable(join_strings(report.devices))},
      {"rows", report.rows == 0 ? "not recorded" : std::to_string(report.rows) + " in the largest run"}};
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
  const bool on_device = report.launches_on_gpu + report.launches_on_cpu_device > 0;
  if (!report.longest.empty() && on_device && !report.stages_synchronized) {
    rows.push_back({"", "stage times are host times; KILN_TIME_STAGES=1 includes device times"});
  }
  rows.push_back({"runs", runs_text(report)});
  add_evidence_rows(report, rows);
  for (std::size_t i = 0; i < report.targets.size(); ++i) {
    const audit::Target& target = report.targets[i];
    rows.push_back(
        {"target " + std::to_string(i + 1),
         std::string(target.rule->name) + place_text(target.operation, target.stage) + ": " + target.rule->advice});
  }
  console.print(table_text(rows, "  ") + '\n');
}

}  // namespace

int severity_code(audit::Severity worst, const std::string& fail_on) {
  for (const auto& [severity, code] : kCodes) {
    std::string name = to_string(severity);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
    if (name == fail_on && worst < severity) return kSuccess;
  }
  return kCodes[static_cast<std::size_t>(worst)].second;
}

int audit_command(const Arguments& arguments, Console& console) {
  if (arguments.files.empty()) return audit_source_command(arguments, console);
  if (arguments.files.size() == 2) {
    if (arguments.source.empty()) return audit_compare_command(arguments, console);
    return report(make_error(Code::InvalidArgument, "cannot compare with --source: it takes one trace; name one trace"),
                  console);
  }
  if (arguments.files.size() > 2) {
    return report(
        make_error(Code::InvalidArgument, "cannot audit more than two traces; name one trace, or two to compare"),
        console);
  }
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
    console.print(summary_text(found, console) + '\n' + missing_text(found) + '\n');
    print_facts(found, console);
    console.print("Is this CPU-shaped GPU code?\n  " + std::string(to_string(found.cpu_shaped)) + ": " +
                  printable(found.cpu_shaped_evidence) + "\n");
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
