// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace kiln::runtime {

/// A reader of the variables of kiln-runtime (session/config/runtime_variables.hpp). It collects a warning for each
/// invalid value, which the caller reports; the value counts as not set. Not thread-safe.
class VariableReader {
 public:
  /// Returns the value of a variable as `parse` returns it, which is an optional. Empty variables count as not set.
  template <class Parse>
  auto read(const char* name, Parse parse) -> decltype(parse(std::string_view())) {
    const std::optional<std::string> text = value_of(name);
    if (!text) return std::nullopt;
    auto value = parse(std::string_view(*text));
    if (!value) warn(name, *text);
    return value;
  }
  std::optional<bool> boolean(const char* name) { return read(name, &parse_boolean); }

  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  static std::optional<std::string> value_of(const char* name);
  void warn(const char* name, const std::string& text);

  std::vector<std::string> warnings_;
};

}  // namespace kiln::runtime
