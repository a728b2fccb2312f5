#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "session/config/config.hpp"

namespace kiln {

/// The description of one setting. Loading, `kiln config show`, the warnings about unknown names and the test of
/// docs/configuration.md all read this table, so that a setting is added in one place.
struct SettingSpec {
  const char* name;           ///< for example cache.dir
  const char* variable;       ///< for example KILN_CACHE_DIR
  const char* default_value;  ///< as written in a configuration file
  const char* meaning;        ///< one-line help text
  char separator;             ///< separates the members of a list; 0 if the value is not a list
  /// configuration files reject relative paths, because they have no defined base directory
  bool is_path;
  /// Sets the value. An error names the valid values and leaves the configuration unchanged.
  Status (*apply)(Config& config, const std::string& text);
};

/// Returns all settings in the order of the documentation. A setting that overrides another one comes after it.
std::span<const SettingSpec> all_settings();
const SettingSpec* find_setting(std::string_view name);

/// Parses a size in bytes: `20G`, `512M`, `1048576`. Suffixes are powers of 1024.
Result<std::uint64_t> parse_size(std::string_view text);

/// Returns the candidate that the author of `name` probably meant, or an empty string if none is similar.
std::string suggest_name(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace kiln
