// SPDX-License-Identifier: Apache-2.0
// kiln jit fill | publish | list | explain, kiln run
#include <charconv>
#include <filesystem>
#include <set>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/jit/filled_record.hpp"
#include "apps/kiln/jit/jit_report.hpp"
#include "apps/kiln/jit/place.hpp"
#include "apps/kiln/jit/run.hpp"
#include "apps/kiln/jit/scan.hpp"
#include "apps/kiln/output/json_common.hpp"
#include "base/error.hpp"
#include "base/format.hpp"
#include "base/text.hpp"
#include "session/access.hpp"

namespace kiln::cli {
namespace {

using namespace std::chrono_literals;

// While a command runs, a file that was written less than this time ago may still change.
constexpr auto kSettle = 2s;
// A name of jit.host_code that has no rule: an adapter of kiln.jit in Python uses it.
constexpr std::string_view kAdapterName = "jax";

std::string profile_of(const Arguments& arguments) { return arguments.profile.empty() ? "default" : arguments.profile; }

Result<jit::Limits> limits_of(const Arguments& arguments) {
  jit::Limits limits;
  limits.time = std::chrono::seconds(arguments.seconds);
  const std::pair<const std::string&, std::uint64_t&> sizes[] = {{arguments.max_entry, limits.entry_bytes},
                                                                 {arguments.max_system, limits.system_bytes},
                                                                 {arguments.max_size, limits.total_bytes}};
  for (const auto& [text, bytes] : sizes) {
    if (text.empty()) continue;
    const auto size = parse_size(text);
    if (!size) return size.error();
    bytes = *size;
  }
  return limits;
}

Result<jit::PlanOptions> plan_options(const Arguments& arguments, const Config& config) {
  jit::PlanOptions options;
  options.systems = arguments.external;
  options.host_code = arguments.host_code;
  options.configured_host_code = config.jit_host_code;
  for (const std::string& each : arguments.roots) {
    const std::size_t equals = each.find('=');
    if (equals == std::string::npos || equals + 1 == each.size())
      return make_error(Code::InvalidArgument, "--root " + each + ": use SYSTEM=DIR");
    options.roots.emplace_back(each.substr(0, equals),
                               std::filesystem::absolute(each.substr(equals + 1)).lexically_normal().string());
  }
  return options;
}

/// What all commands need: the rules, the installed systems, the tiers and the limits.
class JitCommand {
 public:
  /// Returns an error of the command line or of the rules. `command` is the command whose environment counts; empty
  /// means the active one.
  static Result<std::unique_ptr<JitCommand>> open(const Arguments& arguments, Console& console,
                                                  const std::vector<std::string>& command = {}) {
    auto made = std::unique_ptr<JitCommand>(new JitCommand);
    auto limits = limits_of(arguments);
    if (!limits) return limits.error();
    made->limits = *limits;
    auto rules = jit::load_rules(arguments.rules);
    if (!rules) return rules.error();
    made->rules = std::move(*rules);
    SessionOptions options;
    options.on_event = console.listener();
    auto session = Session::open(std::move(options));
    if (!session) return session.error();
    made->session = std::make_unique<Session>(std::move(*session));
    const Config& config = detail::SessionAccess::components(*made->session).config();
    auto how = plan_options(arguments, config);
    if (!how) return how.error();
    if (!command.empty() && !config.disable && !config.cache_path.empty()) {
      (void)make_directories(config.cache_path.front(), 0755);  // as a store creates it; check_roots reports a failure
      how->own_roots = config.cache_path.front() + "/jit";
    }
    const auto python = jit::PythonEnvironment::of(command);
    if (!python.problem.empty()) console.warn(python.problem);
    auto plans = jit::plan_systems(made->rules, python, *how);
    if (!plans) return plans.error();
    made->plans = std::move(*plans);
    for (jit::SystemPlan& plan : made->plans) {
      if (config.disable) plan.skipped = "kiln is disabled (KILN_DISABLE)";
    }
    made->profile = profile_of(arguments);
    made->host_code = config.jit_host_code;
    made->host_code.insert(made->host_code.end(), arguments.host_code.begin(), arguments.host_code.end());
    return made;
  }

  /// Emits an event for each installed version that no rule covers, and for each name of jit.host_code that is unknown.
  /// That host code is off is no event: it is the default.
  void report_unknown_names() const {
    for (const jit::SystemPlan& plan : plans) {
      if (plan.system.rule == nullptr) warn(plan.system.system, plan.skipped);
    }
    for (const std::string& name : detail::SessionAccess::components(*session).config().jit_host_code) {
      if (name == kAdapterName) continue;
      if (const std::string problem = jit::unknown_system(rules, name); !problem.empty())
        warn(name, "jit.host_code: " + problem);
    }
  }

  /// Leaves out the systems whose variable would name a directory that cannot be used: they keep their own.
  void check_roots(Console& console) {
    for (jit::SystemPlan& plan : plans) {
      if (!plan.skipped.empty() || plan.variable_value.empty()) continue;
      if (Status usable = jit::check_writable_root(plan.root); !usable) {
        plan.skipped = "it keeps its own cache directory: " + usable.error().message;
        console.warn(plan.system.system + ": " + plan.skipped);
      }
    }
  }

  std::vector<jit::FillReport> fill() const {
    std::vector<jit::FillReport> reports;
    const jit::JitTiers tiers(*session, profile);
    const Deadline deadline(limits.time);
    std::uint64_t used = 0;
    for (const jit::SystemPlan& plan : plans) {
      if (!plan.skipped.empty()) continue;
      reports.push_back(jit::fill(tiers, plan.system, plan.root, limits, deadline, used));
      used += reports.back().bytes;
    }
    return reports;
  }

  std::vector<jit::PublishReport> publish(std::chrono::nanoseconds settle) const {
    std::vector<jit::PublishReport> reports;
    const jit::JitTiers tiers(*session, profile);
    const Deadline deadline(limits.time);
    for (const jit::SystemPlan& plan : plans) {
      if (plan.skipped.empty())
        reports.push_back(jit::publish(tiers, plan.system, plan.root, limits, deadline, settle));
    }
    return reports;
  }

  jit::Limits limits;
  std::vector<jit::Rule> rules;
  std::unique_ptr<Session> session;
  std::vector<jit::SystemPlan> plans;
  std::string profile;
  std::vector<std::string> host_code;  ///< systems whose host code is used

 private:
  JitCommand() = default;

  void warn(const std::string& system, const std::string& message) const {
    const EventCallback emit = session->event_callback();
    if (!emit) return;
    Event event;
    event.kind = Event::Kind::ConfigWarning;
    event.unit = system;
    event.message = message;
    emit(event);
  }
};

template <class Report>
Json reports_json(const std::vector<Report>& reports, const JitCommand& command) {
  Json systems = Json::array();
  for (const Report& each : reports) systems.push_back(to_json(each));
  return {{"systems", std::move(systems)}, {"skipped", skipped_json(command.plans)}};
}

template <class Report>
int print_reports(const std::vector<Report>& reports, const JitCommand& command, const Arguments& arguments,
                  Console& console) {
  bool failed = false;
  for (const Report& each : reports) failed = failed || !each.error.empty();
  if (arguments.json) {
    console.print(text_of(reports_json(reports, command)));
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

// Returns the paths of the entries in a root; none if the root cannot be used.
std::vector<std::string> root_entries(const jit::SystemPlan& plan) {
  if (plan.system.rule == nullptr) return {};
  const auto root = jit::open_root(plan.root, false);
  return root ? jit::find_entries(root->get(), *plan.system.rule) : std::vector<std::string>();
}

ExplainedSystem explain_system(const jit::JitTiers& tiers, const jit::SystemPlan& plan, const Deadline& deadline) {
  ExplainedSystem explained{plan, {}, {}};
  if (plan.system.rule == nullptr) return explained;
  const auto lists = tiers.lists(plan.system, deadline, explained.notes);
  const auto root = jit::open_root(plan.root, false);
  auto filled = root ? jit::FilledRecord::read(root->get()) : Result<jit::FilledRecord>(jit::FilledRecord());
  if (!filled) {
    explained.notes.push_back(filled.error().message);
    filled = jit::FilledRecord();
  }
  const auto line_of = [&](const std::string& path, std::string& source) -> const jit::EntryList::Line* {
    for (const jit::FoundList& found : lists) {
      if (const auto* line = found.list.find(path)) {
        source = found.source;
        return line;
      }
    }
    return nullptr;
  };
  std::set<std::string> present;
  for (const std::string& path : root_entries(plan)) {
    present.insert(path);
    ExplainedEntry entry{path, "placed", {}, {}, 0};
    const auto* const line = line_of(path, entry.source);
    if (line != nullptr) entry.ms = line->ms;
    if (!filled->has(path)) {
      entry.state = "compiled";
      entry.reason = line == nullptr                   ? "no list of this environment has it"
                     : entry.source == jit::kOwnSource ? "it was compiled here and published"
                                                       : "it existed before the fill, or the fill was not run";
    }
    explained.entries.push_back(std::move(entry));
  }
  for (const jit::FoundList& found : lists) {
    for (const jit::EntryList::Line& line : found.list.lines) {
      if (!present.insert(line.path).second) continue;
      const bool late = deadline.remaining().count() == 0;
      const bool stored = !late && tiers.entry(plan.system.system, line.digest, deadline).has_value();
      explained.entries.push_back({line.path, "missing",
                                   late     ? "not checked: time limit reached"
                                   : stored ? "it was not placed; run 'kiln jit fill'"
                                            : "the list has it, but no tier has the entry",
                                   found.source, line.ms});
    }
  }
  if (lists.empty()) explained.notes.push_back("no list for this profile and environment: " + plan.system.environment);
  for (const std::string& name : tiers.other_lists(plan.system))
    explained.notes.push_back("this user's cache has a list of another environment or profile: " + name);
  return explained;
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
    if (!each.error.empty()) console.warn(each.system + ": nothing was placed: " + each.error);
    for (const std::string& problem : each.problems) console.warn(each.system + ": " + problem);
    if (!each.conflicts.empty()) {
      console.warn(each.system + ": two lists name different entries for " + std::to_string(each.conflicts.size()) +
                   " paths, such as '" + each.conflicts.front() + "'; the entry of the first list is used");
    }
    const std::size_t left_out = each.count(jit::FillOutcome::State::LeftOut);
    if (left_out > 0) console.warn(summary(each));
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
  return print_reports((*command)->publish({}), **command, arguments, console);
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

int jit_explain_command(const Arguments& arguments, Console& console) {
  const auto command = JitCommand::open(arguments, console);
  if (!command) return report(command.error(), console);
  Json systems = Json::array();
  const jit::JitTiers tiers(*(*command)->session, (*command)->profile);
  const Deadline deadline((*command)->limits.time);
  for (const jit::SystemPlan& plan : (*command)->plans) {
    const ExplainedSystem explained = explain_system(tiers, plan, deadline);
    if (arguments.json) {
      systems.push_back(to_json(explained));
      continue;
    }
    console.print(console.bold(plan.system.system) + " " + printable(plan.system.version) + "  " +
                  printable(plan.root));
    if (!plan.skipped.empty()) console.print("  " + printable(plan.skipped));
    for (const ExplainedEntry& entry : explained.entries) {
      console.print("  " + printable(entry.path) + ": " + entry.state +
                    (entry.reason.empty() ? "" : " (" + printable(entry.reason) + ")") +
                    (entry.ms != 0 ? ", " + time_text(entry.ms) : ""));
    }
    for (const std::string& note : explained.notes) console.print("  " + printable(note));
  }
  if (arguments.json) console.print(text_of({{"systems", std::move(systems)}}));
  return kSuccess;
}

int run_command(const Arguments& arguments, Console& console) {
  if (arguments.program.empty())
    return report(make_error(Code::InvalidArgument, "give a command after '--': kiln run -- python serve.py"), console);
  const auto interval = publish_interval(arguments.publish);
  if (!interval) return report(interval.error(), console);
  const auto opened = JitCommand::open(arguments, console, arguments.program);
  if (!opened) return report(opened.error(), console);
  (*opened)->check_roots(console);
  const JitCommand& command = **opened;
  command.report_unknown_names();
  const auto filled = command.fill();
  warn_about(filled, console);
  std::vector<std::pair<std::string, std::string>> variables;
  for (const jit::SystemPlan& plan : command.plans) {
    if (plan.skipped.empty() && !plan.variable_value.empty())
      variables.emplace_back(plan.system.rule->variable, plan.variable_value);
  }
  // For the adapters and the provider package of the command, which read only this variable.
  if (!command.host_code.empty())
    variables.emplace_back("KILN_JIT_HOST_CODE", join_strings(command.host_code, {}, ","));
  const std::function<void()> publish = [&] { (void)command.publish(kSettle); };
  const jit::CommandEnd end = jit::run_command(arguments.program, variables, interval->value_or(0), publish);
  if (end.error) {
    console.error(*end.error, {});
    return end.exit_code;
  }
  std::vector<jit::PublishReport> published;
  if (*interval) published = command.publish({});
  for (const jit::PublishReport& each : published) {
    if (!each.error.empty()) console.warn(each.system + ": not published: " + each.error);
  }
  if (arguments.json) {
    Json report = reports_json(filled, command);
    report["exit_code"] = end.exit_code;
    report["published"] = json_array(published);
    console.print(text_of(report));
  }
  return end.exit_code;
}

}  // namespace kiln::cli
