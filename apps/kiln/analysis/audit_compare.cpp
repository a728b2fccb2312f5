// SPDX-License-Identifier: Apache-2.0
// kiln audit BEFORE AFTER: what improved or regressed between two traces of one program.
#include "apps/kiln/analysis/audit_compare.hpp"

#include "analysis/audit/audit_compare.hpp"
#include "apps/kiln/analysis/render_audit_json.hpp"
#include "apps/kiln/exit_code.hpp"

namespace kiln::cli {
namespace {

using audit::Change;

Text direction_text(const Change& change, const Console& console) {
  const std::string name = to_string(change.direction);
  if (change.direction == Change::Direction::Regressed) return console.red(name);
  return change.direction == Change::Direction::Improved ? console.green(name) : Text(name);
}

void print_change(const Change& change, Console& console) {
  std::string where = change.operation.empty() ? "" : "  " + printable(change.operation);
  if (!change.stage.empty()) where += ", stage " + printable(change.stage);
  const std::string rule =
      change.rule == nullptr ? "" : std::string(to_string(change.rule->severity)) + ' ' + change.rule->name + ", ";
  console.print(direction_text(change, console) + where + "\n  " + rule + printable(change.text) + '\n');
}

void print_names(const char* what, const std::vector<std::string>& names, Console& console) {
  if (!names.empty()) console.print(what + printable(join_strings(names)) + '\n');
}

Text summary_text(const audit::Comparison& comparison, const Console& console) {
  if (comparison.regressed()) return console.red("regressed");
  if (comparison.lacks_evidence) return console.yellow("inconclusive") + ": no regression, but evidence is missing";
  return console.green("no regression");
}

// A new finding has the code of its severity. A finding below --fail-on and a worse number have a code of their own,
// unless --fail-on excludes the finding and nothing else is worse.
int code_of(const audit::Comparison& comparison, const std::string& fail_on) {
  if (const audit::Rule* worst = comparison.worst_finding()) {
    if (const int code = severity_code(worst->severity, fail_on); code != kSuccess) return code;
  }
  for (const Change& change : comparison.changes) {
    if (change.direction == Change::Direction::Regressed && change.rule == nullptr) return kAuditRegression;
  }
  return comparison.lacks_evidence ? kAuditInconclusive : kSuccess;
}

}  // namespace

int audit_compare_command(const Arguments& arguments, Console& console) {
  audit::Report reports[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const Result<audit::Trace> trace = audit::read_trace(arguments.files[i]);
    if (!trace) return report(trace.error(), console);
    reports[i] = audit::run_audit(*trace);
  }
  const audit::Comparison comparison = audit::compare_audits(reports[0], reports[1]);
  if (arguments.json) {
    console.print(comparison_json(comparison, reports[0], reports[1], arguments.files));
    return code_of(comparison, arguments.fail_on);
  }
  for (const Change& change : comparison.changes) print_change(change, console);
  print_names("only before: ", comparison.only_before, console);
  print_names("only after: ", comparison.only_after, console);
  print_names("other rows, so that numbers were not compared: ", comparison.other_rows, console);
  print_names("other numbers of launches, so that only findings were compared: ", comparison.other_launches, console);
  if (comparison.lacks_evidence) console.print("evidence is missing, so that numbers were not compared\n");
  for (const audit::Report& each : reports) {
    for (const audit::MissingEvidence& missing : each.missing) {
      console.print(std::string(&each == reports ? "before" : "after") + ", missing: " + printable(missing.what) +
                    "\n  to do: " + printable(missing.action) + '\n');
    }
  }
  console.print(summary_text(comparison, console));
  return code_of(comparison, arguments.fail_on);
}

}  // namespace kiln::cli
