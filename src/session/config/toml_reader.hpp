#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "session/config/toml_tree.hpp"

namespace kiln {

/// A base class for readers of TOML files. A reader continues after the first error, which is stored here with its line
/// and column. Not thread-safe.
class TomlReader {
 protected:
  void fail(const TomlValue& at, const std::string& what);
  const std::optional<Error>& error() const { return error_; }

  /// Reports an error if a table has members other than these.
  void check_keys(const TomlValue& table, std::initializer_list<std::string_view> names);
  /// Returns a member that is a non-empty string, or an array of non-empty strings. Empty if the member does not exist.
  std::string text(const TomlValue& table, std::string_view name);
  std::vector<std::string> texts(const TomlValue& table, std::string_view name);
  /// Calls `each` for every `[[name]]` of a file, until the first error.
  void tables(const TomlValue& file, std::string_view name, const std::function<void(const TomlValue&)>& each);

 private:
  std::optional<Error> error_;
};

}  // namespace kiln
