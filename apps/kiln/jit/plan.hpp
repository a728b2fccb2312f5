// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/jit/environment.hpp"
#include "apps/kiln/jit/rule.hpp"

namespace kiln::jit {

/// A name for host code that has no rule: an adapter of kiln.jit in Python uses it.
inline constexpr std::string_view kAdapterName = "jax";

/// An installed system, its root, and whether its entries are placed and published.
struct SystemPlan {
  DetectedSystem system;
  std::string root;
  std::string variable_value;  ///< value to set for a command; empty if the variable stays as it is
  std::string skipped;         ///< why nothing is placed or published; empty if the system is used
};

struct PlanOptions {
  std::vector<std::string> systems;                        ///< names; empty means all that are installed
  std::vector<std::string> host_code;                      ///< systems with host code to use, of the command line
  std::vector<std::string> configured_host_code;           ///< same, of the configuration; unknown names have no effect
  std::vector<std::pair<std::string, std::string>> roots;  ///< root by name of the system
  /// Directory for the caches of a command whose variables are not set; empty means that the rule's root is used.
  std::string own_roots;
};

/// Returns the message for a name that no rule has; empty if one has it.
std::string unknown_system(const std::vector<Rule>& rules, const std::string& name);

/// Decides for each installed system. Returns Code::InvalidArgument if an option names a system without a rule, or
/// a root that a command cannot use.
Result<std::vector<SystemPlan>> plan_systems(const std::vector<Rule>& rules, const PythonEnvironment& python,
                                             const PlanOptions& options);

}  // namespace kiln::jit
