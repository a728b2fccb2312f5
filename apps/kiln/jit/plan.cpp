// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/plan.hpp"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/process/environment.hpp"
#include "session/config/member_reader.hpp"

namespace kiln::jit {
namespace {

using Values = std::map<std::string, std::string>;  // by variable

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_names(const std::vector<Rule>& rules, const PlanOptions& options) {
  std::vector<std::string> named = options.systems;
  for (const std::string& name : options.host_code) {
    if (name != kAdapterName) named.push_back(name);
  }
  for (const auto& [system, root] : options.roots) named.push_back(system);
  for (const std::string& name : named) {
    if (std::string problem = unknown_system(rules, name); !problem.empty())
      return make_error(Code::InvalidArgument, std::move(problem));
  }
  return {};
}

// Returns the root that an option gives for a system; empty if none does.
std::string given_root(const PlanOptions& options, const std::string& name) {
  std::string given;
  for (const auto& [system, root] : options.roots) {
    if (system == name) given = root;
  }
  return given;
}

// Returns the value of the variable for a given root: the directory above the subdirectory of the rule.
Result<std::string> value_for_root(const Rule& rule, const std::string& root) {
  const std::string end = rule.subdirectory.empty() ? "" : "/" + rule.subdirectory;
  if (root.ends_with(end)) return root.substr(0, root.size() - end.size());
  return make_error(Code::InvalidArgument, "--root " + rule.system + "=" + root + ": the cache is '" +
                                               rule.subdirectory + "' below " + rule.variable + "; use " + root + end);
}

// Returns the values for a command that uses the given roots. Systems with one variable have one value.
Result<Values> values_for_roots(const std::vector<DetectedSystem>& systems, const PlanOptions& options) {
  Values values;
  if (options.own_roots.empty()) return values;
  for (const DetectedSystem& system : systems) {
    const std::string root = given_root(options, system.system);
    if (root.empty() || system.rule == nullptr || system.rule->variable.empty()) continue;
    const auto value = value_for_root(*system.rule, root);
    if (!value) return value.error();
    const auto [other, added] = values.emplace(system.rule->variable, *value);
    if (!added && other->second != *value)
      return make_error(Code::InvalidArgument, "--root " + system.system + "=" + root + ": another --root sets " +
                                                   other->first + " to " + other->second +
                                                   "; use one directory for both systems");
  }
  return values;
}

// Sets the root for a value of the variable that the user set.
void set_root_of_user(SystemPlan& plan, const std::string& value) {
  const Rule& rule = *plan.system.rule;
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(value, error);
  if (error)
    plan.skipped = rule.variable + " is a relative path and the working directory cannot be read: " + error.message() +
                   "; use an absolute path";
  if (value.find(':') != std::string::npos)
    plan.skipped = rule.variable + " names several directories; set it to one, or give --root";
  plan.root = rule.root_for(error ? value : whole.string(), "");
}

// Sets the root of a plan: the given one, that of the variable, kiln's own, or the default one of the system. `values`
// are those of the command's variables: that of a given root applies to all systems with the variable.
void set_root(SystemPlan& plan, const PlanOptions& options, Values& values) {
  const Rule& rule = *plan.system.rule;
  const bool sets_variable = !options.own_roots.empty() && !rule.variable.empty();
  const std::string of_user = rule.variable.empty() ? "" : environment_variable(rule.variable.c_str()).value_or("");
  plan.root = given_root(options, rule.system);
  if (sets_variable && (of_user.empty() || values.contains(rule.variable))) {
    // Two systems with one variable have one directory.
    plan.variable_value = values.emplace(rule.variable, join_path(options.own_roots, rule.system)).first->second;
    if (plan.root.empty()) plan.root = rule.root_for(plan.variable_value, "");
  }
  if (!plan.root.empty()) return;
  if (!of_user.empty()) return set_root_of_user(plan, of_user);
  const std::string home = environment_variable("HOME").value_or("");
  if (!home.empty()) {
    plan.root = rule.root_for("", home);
  } else {
    plan.skipped = "HOME is not set; set it or " + (rule.variable.empty() ? "give --root" : rule.variable);
  }
}

}  // namespace

std::string unknown_system(const std::vector<Rule>& rules, const std::string& name) {
  std::vector<std::string_view> known;
  for (const Rule& rule : rules) known.push_back(rule.system);
  const bool found = std::find(known.begin(), known.end(), name) != known.end();
  return found ? std::string() : unknown_name("system", name, known, "'");
}

Result<std::vector<SystemPlan>> plan_systems(const std::vector<Rule>& rules, const PythonEnvironment& python,
                                             const PlanOptions& options) {
  if (Status checked = check_names(rules, options); !checked) return checked.error();
  std::vector<SystemPlan> plans;
  std::vector<DetectedSystem> systems = detect_systems(rules, python);
  if (!options.systems.empty())
    std::erase_if(systems, [&](const DetectedSystem& each) { return !contains(options.systems, each.system); });
  auto values = values_for_roots(systems, options);
  if (!values) return values.error();
  for (DetectedSystem& system : systems) {
    SystemPlan plan;
    plan.system = std::move(system);
    const std::string& name = plan.system.system;
    if (plan.system.rule == nullptr) {
      plan.skipped = "no rule covers version " + plan.system.version + " of " + name +
                     "; nothing is placed or published (add a rule with --rules)";
    } else {
      set_root(plan, options, *values);
      const bool enabled = contains(options.host_code, name) || contains(options.configured_host_code, name);
      if (plan.system.rule->host_code && !enabled)
        plan.skipped =
            "the entries of " + name + " contain host code; enable them with --host-code " + name + " or jit.host_code";
      if (plan.system.rule->host_code && enabled && python.python.empty())
        plan.skipped =
            "its entries contain host code, and the version of Python is not known; name the interpreter, "
            "such as python3.12, in the command";
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace kiln::jit
