// SPDX-License-Identifier: Apache-2.0
#include "runtime/settings/variable_values.hpp"

#include <algorithm>

#include "base/process/environment.hpp"
#include "runtime/dispatch/effective_settings.hpp"
#include "runtime/memory/memory_settings.hpp"
#include "runtime/settings/variable_reader.hpp"
#include "session/config/runtime_variables.hpp"

namespace kiln::runtime {

VariableValues VariableValues::read() {
  VariableValues made;
  made.warnings = EnvironmentSettings::read().warnings;
  VariableReader others;
  (void)RequestedMemory::read(others);
  (void)others.boolean("KILN_CALIBRATE_QUICK");
  made.warnings.insert(made.warnings.end(), others.warnings().begin(), others.warnings().end());
  for (const RuntimeVariable& variable : kRuntimeVariables) {
    const std::string value = environment_variable(variable.name).value_or("");
    const bool invalid = std::any_of(made.warnings.begin(), made.warnings.end(), [&](const std::string& warning) {
      return warning.starts_with(std::string(variable.name) + " is ignored");
    });
    const bool set = !value.empty() && !invalid;
    made.settings.push_back({variable.name, set ? value : variable.default_value, set ? variable.name : "default"});
  }
  return made;
}

}  // namespace kiln::runtime
