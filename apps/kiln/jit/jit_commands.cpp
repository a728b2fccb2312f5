// SPDX-License-Identifier: Apache-2.0
// kiln jit fill | publish | list, kiln run
#include <cstdlib>

#include <charconv>
#include <set>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/jit/jit_command.hpp"
#include "apps/kiln/jit/jit_report.hpp"
#include "apps/kiln/jit/run.hpp"
#include "apps/kiln/output/json_common.hpp"
#include "base/error.hpp"
#include "base/process/environment.hpp"
#include "base/text.hpp"

namespace kiln::cli {
namespace {

using namespace std::chrono_literals;

// While a command runs, a file that was written less than this time ago may still change.
constexpr auto kSettle = 2s;
constexpr const char* kTraceVariable = "KILN_TRACE";

template <class Report>
Json reports_json(const std::vector<Report>& reports) {
  Json systems = Json::array();
  for (const Report& each : reports) systems.push_back(to_json(each));
  return systems;
}

template <class Report>
int print_reports(const std::vector<Report>& reports, const JitCommand& command, const Arguments& arguments,
                  Console& console) {
  bool failed = false;
  for (const Report& each : reports) failed = failed || !each.error.empty();
  if (arguments.json) {
    console.print(text_of({{"systems", reports_json(reports)}, {"skipped", skipped_json(command.plans)}}));
    return failed ? kFailed : kSuccess;
  }
  for (const Report& each : reports) {
    if (each.error.empty()) console.print(printable(summary(each)));
    if (!each.error.empty()) console.error(make_error(Code::Io, each.error), each.system);
    for (const auto& entry : each.entries) {
      if (!entry.reason.empty() && arguments.verbose)
        console.print("  " + printable(entry.path) + ": " + printable(entry.reason));
    }
  }
  for (const jit::SystemPlan& plan : command.plans) {
    if (!plan.skipped.empty()) console.print(printable(plan.system.system + ": " + plan.skipped));
  }
  if (command.plans.empty()) console.print("No system with a rule is installed in the Python environment.");
  return failed ? kFailed : kSuccess;
}

// Parses --publish: no value for never, 0 for exit.
Result<std::optional<unsigned>> publish_interval(const std::string& text) {
  if (text == "never") return std::optional<unsigned>();
  if (text == "exit") return std::optional<unsigned>(0U);
  unsigned seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds == 0 || seconds > 86400)
    return make_error(Code::InvalidArgument, "--publish: use exit, never, or a number of seconds from 1 to 86400");
  return std::optional<unsigned>(seconds);
}

void warn_about(const std::vector<jit::FillReport>& reports, Console& console) {
  for (const jit::FillReport& each : reports) {
    for (const std::string& problem : each.problems) console.warn(each.system + ": " + problem);
    if (!each.conflicts.empty()) {
      console.warn(each.system + ": two lists name different entries for " + std::to_string(each.conflicts.size()) +
                   " paths, such as '" + each.conflicts.front() + "'; the entry of the first list is used");
    }
    const std::size_t left_out = each.count(jit::FillOutcome::State::LeftOut);
    if (left_out > 0) console.warn(summary(each));
    if (const std::string rejected = warning(each); !rejected.empty()) console.warn(rejected);
  }
}

void warn_about(const std::vector<jit::PublishReport>& reports, Console& console) {
  for (const jit::PublishReport& each : reports) {
    if (const std::string refused = warning(each); !refused.empty()) console.warn(refused);
  }
}

}  // namespace

int jit_fill_command(const Arguments& arguments, Console& console) {
  const auto command = JitCommand::open(arguments, console);
  if (!command) return report(command.error(), console);
  (*command)->report_unknown_names();
  const auto reports = (*command)->fill();
  warn_about(reports, console);
  return print_reports(reports, **command, arguments, console);
}

int jit_publish_command(const Arguments& arguments, Console& console) {
  const auto command = JitCommand::open(arguments, console);
  if (!command) return report(command.error(), console);
  (*command)->report_unknown_names();
  const auto reports = (*command)->publish({});
  warn_about(reports, console);
  return print_reports(reports, **command, arguments, console);
}

int jit_list_command(const Arguments& arguments, Console& console) {
  const auto command = JitCommand::open(arguments, console);
  if (!command) return report(command.error(), console);
  std::vector<std::vector<std::string>> rows = {{"SYSTEM", "VERSION", "ENTRIES", "LISTED", "ROOT", "NOTE"}};
  Json systems = Json::array();
  const jit::JitTiers tiers(*(*command)->session, (*command)->profile);
  const Deadline deadline((*command)->limits.time);
  for (const jit::SystemPlan& plan : (*command)->plans) {
    ListedSystem listed{plan, root_entries(plan).size(), 0};
    std::set<std::string> paths;
    std::vector<std::string> problems;
    if (plan.system.rule != nullptr) {
      for (const auto& found : tiers.lists(plan.system, deadline, problems)) {
        for (const auto& line : found.list.lines) paths.insert(line.path);
      }
    }
    listed.listed = paths.size();
    for (const std::string& problem : problems) console.warn(plan.system.system + ": " + problem);
    systems.push_back(to_json(listed));
    rows.push_back({plan.system.system, printable(plan.system.version), std::to_string(listed.entries),
                    std::to_string(listed.listed), printable(plan.root), printable(plan.skipped)});
  }
  if (arguments.json) {
    console.print(text_of({{"systems", std::move(systems)}}));
  } else {
    console.print(rows.size() > 1 ? table_text(rows) : "No system with a rule is installed in the Python environment.");
  }
  return kSuccess;
}

int run_command(const Arguments& arguments, Console& console) {
  if (arguments.program.empty())
    return report(make_error(Code::InvalidArgument, "give a command after '--': kiln run -- python serve.py"), console);
  const auto interval = publish_interval(arguments.publish);
  if (!interval) return report(interval.error(), console);
  const sigset_t mask = jit::block_publish_signal();
  // The command writes its trace to the file that the user named; this program writes its own beside it.
  const std::string trace = environment_variable(kTraceVariable).value_or("");
  if (!trace.empty()) setenv(kTraceVariable, (trace + ".run").c_str(), 1);
  const auto opened = JitCommand::open(arguments, console, arguments.program);
  if (!opened) return report(opened.error(), console);
  (*opened)->check_roots(console);
  const JitCommand& command = **opened;
  command.report_unknown_names();
  const auto filled = command.fill();
  for (const jit::FillReport& each : filled) {
    if (!each.error.empty()) console.warn(each.system + ": nothing was placed: " + each.error);
  }
  warn_about(filled, console);
  std::vector<std::pair<std::string, std::string>> variables;
  for (const jit::SystemPlan& plan : command.plans) {
    if (plan.skipped.empty() && !plan.variable_value.empty())
      variables.emplace_back(plan.system.rule->variable, plan.variable_value);
  }
  // For the adapters and the provider package of the command, which read only this variable.
  if (!command.host_code.empty())
    variables.emplace_back("KILN_JIT_HOST_CODE", join_strings(command.host_code, {}, ","));
  if (!trace.empty()) variables.emplace_back(kTraceVariable, trace);
  const std::function<void()> publish = [&] { (void)command.publish(kSettle); };
  const jit::CommandEnd end = jit::run_command(arguments.program, mask, variables, interval->value_or(0), publish);
  if (end.error) {
    console.error(*end.error, {});
    return end.exit_code;
  }
  std::vector<jit::PublishReport> published;
  if (*interval) published = command.publish({});
  for (const jit::PublishReport& each : published) {
    if (!each.error.empty()) console.warn(each.system + ": not published: " + each.error);
  }
  warn_about(published, console);
  if (arguments.json) {
    console.print(text_of({{"systems", reports_json(filled)},
                           {"skipped", skipped_json(command.plans)},
                           {"exit_code", end.exit_code},
                           {"published", reports_json(published)}}));
  }
  return end.exit_code;
}

}  // namespace kiln::cli
