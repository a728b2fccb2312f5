// SPDX-License-Identifier: Apache-2.0
#include "base/process/environment.hpp"

#include <cstdlib>

#include "base/files/files.hpp"

namespace kiln {

std::optional<std::string> environment_variable(const char* name) {
  const char* value = secure_getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::vector<std::pair<std::string, std::string>> environment_variables(std::span<const char* const> names) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* name : names) {
    if (auto value = environment_variable(name)) found.emplace_back(name, std::move(*value));
  }
  return found;
}

std::string user_path(const char* variable, const std::string& home, const std::string& below) {
  const auto directory = [](const char* name) {
    std::string value = environment_variable(name).value_or("");
    return value.starts_with('/') ? value : std::string();
  };
  if (const std::string set = directory(variable); !set.empty()) return join_path(set, below);
  const std::string own = directory("HOME");
  return own.empty() ? own : join_path(own, home + '/' + below);
}

}  // namespace kiln
