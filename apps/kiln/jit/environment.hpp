// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/jit/rule.hpp"

namespace kiln::jit {

/// The Python environment of a command: its package directories and the distributions in them. Read from the names of
/// directories; no Python process is started. A value type.
struct PythonEnvironment {
  std::string prefix;                           ///< empty if there is no Python
  std::string python;                           ///< library directory, such as python3.12; empty if it is not known
  std::map<std::string, std::string> versions;  ///< by normalized name of the distribution
  std::string problem;                          ///< why the packages are not known, and what to do; usually empty

  /// Returns the environment of a command: of its interpreter or script, otherwise of VIRTUAL_ENV, otherwise of the
  /// python3 in PATH. An empty command means the latter two.
  static PythonEnvironment of(const std::vector<std::string>& command);
  /// Reads the distributions that an interpreter of a prefix sees.
  static PythonEnvironment of_prefix(const std::string& prefix, const std::string& interpreter);
};

/// A system that is installed: its rule, its version, and the text that identifies its environment.
struct DetectedSystem {
  const Rule* rule = nullptr;  ///< null if no rule covers the version
  std::string system;
  std::string version;
  std::string environment;  ///< one line per fact: rule, distributions, machine; for host code C library and Python
};

/// Returns the systems whose first distribution is installed, in the order of the rules. `rules` must outlive the
/// result.
std::vector<DetectedSystem> detect_systems(const std::vector<Rule>& rules, const PythonEnvironment& python);

/// Returns the text of an environment: the facts on which the entries of a system depend beyond their own keys.
std::string environment_text(const Rule& rule, const PythonEnvironment& python);

}  // namespace kiln::jit
