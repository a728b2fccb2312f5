// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <kiln/result.hpp>

#include "session/config/config.hpp"
#include "session/config/member_reader.hpp"

namespace kiln {

/// The description of one setting. Loading, `kiln config show`, the warnings about unknown names and the test of
/// docs/reference/configuration.md all read this table, so that a setting is added in one place.
struct SettingSpec {
  using Field = std::variant<bool Config::*, std::optional<bool> Config::*, std::uint64_t Config::*,
                             std::optional<unsigned> Config::*, std::chrono::seconds Config::*,
                             std::chrono::milliseconds Config::*, std::string Config::*,
                             std::vector<std::string> Config::*, std::vector<unsigned> Config::*>;

  const char* name;           ///< for example cache.dir
  const char* variable;       ///< for example KILN_CACHE_DIR
  const char* default_value;  ///< as written in a configuration file
  const char* meaning;        ///< one-line help text
  Field field;
  Format format;

  /// Returns whether the setting is a path. Configuration files reject relative paths, because they have no defined
  /// base directory.
  bool is_path() const { return format.form == Format::Form::Path || format.form == Format::Form::BundlePath; }
  /// Sets the value. An error names the valid values and leaves the configuration unchanged.
  Status apply(Config& config, const std::string& text) const;
};

/// Returns all settings in the order of the documentation. A setting that overrides another one comes after it.
std::span<const SettingSpec> all_settings();
const SettingSpec* find_setting(std::string_view name);

/// One `name = value` of a configuration file. The name is dotted: `[cache]` and `dir = "/a"` give `cache.dir`.
struct FileSetting {
  std::string name;
  std::vector<std::string> values;  ///< as text; one value, unless the file has an array
  unsigned line = 0;
};

/// Returns the settings in a configuration file, with unchecked names and in no particular order. An error names the
/// line. Accepts arbitrary bytes.
Result<std::vector<FileSetting>> parse_config(std::string_view text);

}  // namespace kiln
