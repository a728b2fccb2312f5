// SPDX-License-Identifier: Apache-2.0
#include "runtime/settings/variable_reader.hpp"

#include <algorithm>
#include <iterator>

#include "base/process/environment.hpp"
#include "session/config/runtime_variables.hpp"

namespace kiln::runtime {

std::optional<std::string> VariableReader::value_of(const char* name) {
  auto value = environment_variable(name);
  if (value && value->empty()) value.reset();
  return value;
}

void VariableReader::warn(const char* name, const std::string& text) {
  const auto* const row =
      std::find_if(std::begin(kRuntimeVariables), std::end(kRuntimeVariables),
                   [&](const RuntimeVariable& variable) { return std::string_view(variable.name) == name; });
  warnings_.push_back(std::string(name) + " is ignored: " +
                      invalid_value(text, row == std::end(kRuntimeVariables) ? "another value" : row->valid));
}

}  // namespace kiln::runtime
