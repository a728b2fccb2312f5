#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "session/config.hpp"

namespace kiln {

/// Everything there is to know of one setting. Loading, `kiln config show`, the warnings about unknown names and the
/// test of docs/configuration.md all read this table, so that a setting is added in one place.
struct SettingKind {
  const char* name;           ///< cache.dir
  const char* variable;       ///< KILN_CACHE_DIR
  const char* default_value;  ///< as a file would say it
  const char* meaning;        ///< one line for people
  char separator;             ///< between the members of a list; zero where the value is no list
  bool is_path;               ///< relative ones are refused in files, where nobody could say relative to what
  /// Sets it; an error says what would have been a value, and leaves the configuration as it was.
  Status (*apply)(Config& config, const std::string& text);
};

/// In the order of the documentation. A setting that overrides another stands behind it.
std::span<const SettingKind> setting_kinds();
const SettingKind* find_setting(std::string_view name);

/// `20G`, `512M`, `1048576`: bytes, with powers of 1024.
Result<std::uint64_t> parse_size(std::string_view text);

/// The candidate that the author of `name` probably meant; empty where none is near.
std::string closest(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace kiln
