#include "base/environment.hpp"

#include <cstdlib>

namespace kiln {

std::optional<std::string> environment_variable(const char* name) {
  const char* value = secure_getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

}  // namespace kiln
