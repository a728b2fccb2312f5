#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "session/toml_tree.hpp"

namespace kiln {

/// What readers of TOML files share. A reader goes on after the first thing that is wrong, which is remembered here
/// with its line and column.
class TomlReader {
 protected:
  void fail(const TomlValue& at, const std::string& what);
  const std::optional<Error>& error() const { return error_; }

  /// A table has members of these names alone.
  void known(const TomlValue& table, std::initializer_list<std::string_view> names);
  /// A member that is a string, or an array of strings, none of them empty; empty where there is no such member.
  std::string text(const TomlValue& table, std::string_view name);
  std::vector<std::string> texts(const TomlValue& table, std::string_view name);
  /// Calls `each` for every `[[name]]` of a file, until something is wrong.
  void tables(const TomlValue& file, std::string_view name, const std::function<void(const TomlValue&)>& each);

 private:
  std::optional<Error> error_;
};

}  // namespace kiln
