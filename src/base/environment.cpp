#include "base/environment.hpp"

#include <cstdlib>

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

}  // namespace kiln
