// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "session/config/config.hpp"

namespace kiln::runtime {

/// The variables of kiln-runtime as a program that overrides none of them would use them.
struct VariableValues {
  /// In the order of the documentation. The origin is the variable, or `default` if it is not set or invalid.
  std::vector<Setting> settings;
  std::vector<std::string> warnings;  ///< about invalid values

  static VariableValues read();
};

}  // namespace kiln::runtime
