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

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status check_names(const std::vector<Rule>& rules, const PlanOptions& options) {
  std::vector<std::string> named = options.systems;
  named.insert(named.end(), options.host_code.begin(), options.host_code.end());
  for (const auto& [system, root] : options.roots) named.push_back(system);
  for (const std::string& name : named) {
    if (std::string problem = unknown_system(rules, name); !problem.empty())
      return make_error(Code::InvalidArgument, std::move(problem));
  }
  return {};
}

// Sets the variable for a command that uses the given root: the directory above the subdirectory of the rule.
Status set_variable_for_root(SystemPlan& plan) {
  const Rule& rule = *plan.system.rule;
  const std::string end = rule.subdirectory.empty() ? "" : "/" + rule.subdirectory;
  if (!plan.root.ends_with(end))
    return make_error(Code::InvalidArgument, "--root " + rule.system + "=" + plan.root + ": the cache is '" +
                                                 rule.subdirectory + "' below " + rule.variable + "; use " + plan.root +
                                                 end);
  plan.variable_value = plan.root.substr(0, plan.root.size() - end.size());
  return {};
}

// Sets the root of a plan: the given one, that of the variable, kiln's own, or the default one of the system.
Status set_root(SystemPlan& plan, const PlanOptions& options, std::map<std::string, std::string>& own_roots) {
  const Rule& rule = *plan.system.rule;
  for (const auto& [system, root] : options.roots) {
    if (system == rule.system) plan.root = root;
  }
  if (!plan.root.empty()) {
    return options.own_roots.empty() || rule.variable.empty() ? Status() : set_variable_for_root(plan);
  }
  std::string value = rule.variable.empty() ? "" : environment_variable(rule.variable.c_str()).value_or("");
  const bool is_own = value.empty() && !rule.variable.empty() && !options.own_roots.empty();
  // Two systems with one variable have one directory.
  if (is_own) value = own_roots.emplace(rule.variable, join_path(options.own_roots, rule.system)).first->second;
  if (value.find(':') != std::string::npos)
    plan.skipped = rule.variable + " names several directories; set it to one, or give --root";
  if (!value.empty()) {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::absolute(value, error);
    if (error)
      plan.skipped = rule.variable +
                     " is a relative path and the working directory cannot be read: " + error.message() +
                     "; use an absolute path";
    if (!error) value = whole.string();
  }
  if (is_own) plan.variable_value = value;
  plan.root = rule.root_for(value, environment_variable("HOME").value_or(""));
  return {};
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
  std::map<std::string, std::string> own_roots;  // by variable
  for (DetectedSystem& system : detect_systems(rules, python)) {
    if (!options.systems.empty() && !contains(options.systems, system.system)) continue;
    SystemPlan plan;
    plan.system = std::move(system);
    const std::string& name = plan.system.system;
    if (plan.system.rule == nullptr) {
      plan.skipped = "no rule covers version " + plan.system.version + " of " + name +
                     "; nothing is placed or published (add a rule with --rules)";
    } else {
      if (Status set = set_root(plan, options, own_roots); !set) return set.error();
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
