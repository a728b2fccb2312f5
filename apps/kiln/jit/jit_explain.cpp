// SPDX-License-Identifier: Apache-2.0
// kiln jit explain, kiln explain --external
#include <algorithm>
#include <filesystem>
#include <set>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/jit/filled_record.hpp"
#include "apps/kiln/jit/jit_command.hpp"
#include "apps/kiln/jit/jit_report.hpp"
#include "apps/kiln/jit/place.hpp"
#include "apps/kiln/output/json_common.hpp"
#include "base/text.hpp"
#include "session/access.hpp"

namespace kiln::cli {
namespace {

// Names of the form SYSTEM or SYSTEM/PATH; the latter names an entry, or all below a directory.
using Names = std::vector<std::string>;

Names systems_in(Names names) {
  for (std::string& name : names) name.resize(std::min(name.size(), name.find('/')));
  return names;
}

bool is_named(const Names& names, const std::string& system, const std::string& path) {
  const std::string entry = system + '/' + path;
  return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return name == entry || entry.starts_with(name + '/');
         });
}

bool has_one_of(const std::vector<ExplainedEntry>& entries, const Names& names, const std::string& system) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const ExplainedEntry& entry) { return is_named(names, system, entry.path); });
}

// Returns the lines of a text, each of which ends with a line end, as `a, b`.
std::string one_line(const std::string& text) {
  std::string line;
  for (const std::string_view each : split(text, '\n')) {
    if (!each.empty()) line.append(line.empty() ? "" : ", ").append(each);
  }
  return line;
}

// Returns whether a fill placed the entry, or places it on another host because a list has it.
bool is_covered(const ExplainedEntry& entry) {
  return entry.state == "placed" || (entry.state == "compiled" && !entry.source.empty());
}

ExplainedSystem explain_system(const jit::JitTiers& tiers, const jit::SystemPlan& plan, const Names& names,
                               const Deadline& deadline) {
  ExplainedSystem explained{plan, {}, {}, false};
  const std::string& system = plan.system.system;
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
    if (!is_named(names, system, path)) continue;
    present.insert(path);
    ExplainedEntry entry{path, "placed", {}, {}};
    const auto* const line = line_of(path, entry.source);
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
      if (!is_named(names, system, line.path) || !present.insert(line.path).second) continue;
      const bool late = deadline.remaining().count() == 0;
      const bool stored = !late && tiers.entry(system, line.digest, deadline).has_value();
      explained.entries.push_back({line.path, "missing",
                                   late     ? "not checked: time limit reached"
                                   : stored ? "it was not placed; run 'kiln jit fill'"
                                            : "the list has it, but no tier has the entry",
                                   found.source});
    }
  }
  explained.complete = plan.skipped.empty() && !lists.empty() &&
                       std::all_of(explained.entries.begin(), explained.entries.end(), is_covered);
  for (const std::string& name : names) {
    if (!name.starts_with(system + '/') || has_one_of(explained.entries, {name}, system)) continue;
    explained.notes.push_back("neither the cache directory nor a list has " + name.substr(system.size() + 1));
    explained.complete = false;
  }
  if (lists.empty())
    explained.notes.push_back("no list for this profile and environment: " + one_line(plan.system.environment));
  for (const std::string& name : tiers.other_lists(plan.system))
    explained.notes.push_back("this user's cache has a list of another environment or profile: " + name);
  return explained;
}

// Returns the named systems that are not installed.
std::vector<ExplainedSystem> absent_systems(const std::vector<jit::SystemPlan>& plans, const Names& systems) {
  std::vector<ExplainedSystem> absent;
  std::set<std::string> seen;
  for (const jit::SystemPlan& plan : plans) seen.insert(plan.system.system);
  for (const std::string& name : systems) {
    if (!seen.insert(name).second) continue;
    ExplainedSystem explained;
    explained.plan.system.system = name;
    explained.plan.skipped = name + " is not installed in the Python environment";
    absent.push_back(std::move(explained));
  }
  return absent;
}

// `kiln run` uses another directory than the system alone.
void add_note_of_run(const Config& config, ExplainedSystem& explained) {
  const jit::SystemPlan& plan = explained.plan;
  if (plan.system.rule == nullptr || config.cache_path.empty()) return;
  const std::string own = own_roots(config) + "/" + plan.system.system;
  std::error_code ignored;
  if (own == plan.root || plan.root.starts_with(own + '/') || !std::filesystem::exists(own, ignored)) return;
  explained.notes.push_back("kiln run has used another directory: kiln jit explain --root " + plan.system.system + "=" +
                            plan.system.rule->root_for(own, ""));
}

Text text_of(const ExplainedSystem& explained, const Console& console) {
  const jit::SystemPlan& plan = explained.plan;
  Text text = console.bold(plan.system.system);
  if (!plan.system.version.empty()) text += " " + printable(plan.system.version) + "  " + printable(plan.root);
  if (!plan.skipped.empty()) text += "\n  " + printable(plan.skipped);
  for (const ExplainedEntry& entry : explained.entries) {
    text += "\n  " + printable(entry.path) + ": " + entry.state +
            (entry.reason.empty() ? "" : " (" + printable(entry.reason) + ")");
  }
  for (const std::string& note : explained.notes) text += "\n  " + printable(note);
  return text;
}

}  // namespace

int jit_explain_command(const Arguments& arguments, Console& console) {
  Arguments of_systems = arguments;
  of_systems.external = systems_in(arguments.external);
  const auto command = JitCommand::open(of_systems, console);
  if (!command) return report(command.error(), console);
  const jit::JitTiers tiers(*(*command)->session, (*command)->profile);
  const Deadline deadline((*command)->limits.time);
  std::vector<ExplainedSystem> all;
  for (const jit::SystemPlan& plan : (*command)->plans) {
    all.push_back(explain_system(tiers, plan, arguments.external, deadline));
    add_note_of_run(detail::SessionAccess::components(*(*command)->session).config(), all.back());
  }
  for (ExplainedSystem& absent : absent_systems((*command)->plans, of_systems.external))
    all.push_back(std::move(absent));
  Json systems = Json::array();
  bool complete = !all.empty();
  for (const ExplainedSystem& explained : all) {
    complete = complete && explained.complete;
    if (arguments.json) systems.push_back(to_json(explained));
    if (!arguments.json) console.print(text_of(explained, console));
  }
  if (arguments.json) console.print(text_of({{"systems", std::move(systems)}}));
  if (!arguments.json && all.empty()) console.print("No system with a rule is installed in the Python environment.");
  return arguments.check && !complete ? kFailed : kSuccess;
}

}  // namespace kiln::cli
