// SPDX-License-Identifier: Apache-2.0
#include "session/config/config.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/files/files.hpp"
#include "base/format.hpp"
#include "base/process/environment.hpp"
#include "base/visible_text.hpp"
#include "session/config/runtime_variables.hpp"
#include "session/config/settings.hpp"

extern char** environ;

namespace kiln {
namespace {

constexpr std::string_view kPrefix = "KILN_";
constexpr const char* kConfigVariable = "KILN_CONFIG";

// Returns true for a KILN_* variable that is not a session setting.
bool is_other_variable(std::string_view name) {
  return name == kConfigVariable || std::any_of(std::begin(kRuntimeVariables), std::end(kRuntimeVariables),
                                                [&](const RuntimeVariable& variable) { return name == variable.name; });
}

Result<std::string> default_cache_directory() {
  if (std::string own = user_path("XDG_CACHE_HOME", ".cache", "kiln"); !own.empty()) return own;
  Result<std::string> local = host_local_directory();
  if (!local) return local;
  return *local + "/cache";
}

bool is_cache_place(std::string_view name) { return name == "cache.dir" || name == "cache.path"; }

class ConfigLoader {
 public:
  ConfigLoader(const SessionOptions& options, const EventEmitter& emitter) : options_(options), emitter_(emitter) {}

  Config load(const std::string& system_file);

 private:
  void take_defaults();
  void take_program();
  void take_file(const std::string& path, bool must_exist);
  void take_file_setting(const SettingSpec& kind, const FileSetting& value, std::string origin);
  void take_variables();
  void show_cache_place();

  // Sets a setting from a source that overrides all previous ones.
  void set(const SettingSpec& kind, const std::string& text, std::string origin);
  const char* locked_by(const SettingSpec& kind) const;
  void warn(std::string message) const { emitter_.emit(Event::Kind::ConfigWarning, "", std::move(message)); }
  void warn_unknown(const std::string& where, std::string_view name, bool variable) const;

  const SessionOptions& options_;
  const EventEmitter& emitter_;
  Config config_;
  const char* cache_place_ = "cache.dir";  // the setting that is in effect
};

Config ConfigLoader::load(const std::string& system_file) {
  take_defaults();
  take_program();
  take_file(system_file, false);
  const std::string own = user_path("XDG_CONFIG_HOME", ".config", "kiln/config.toml");
  if (!own.empty()) take_file(own, false);
  if (const auto path = environment_variable(kConfigVariable); path && !path->empty()) take_file(*path, true);
  take_variables();
  show_cache_place();
  return std::move(config_);
}

void ConfigLoader::take_defaults() {
  config_.settings.reserve(all_settings().size());
  for (const SettingSpec& kind : all_settings()) {
    config_.settings.push_back({kind.name, kind.default_value, "default", locked_by(kind) != nullptr});
    (void)kind.apply(config_, kind.default_value);  // the table's own values are valid; a test checks this
  }
}

void ConfigLoader::take_program() {
  for (const SettingSpec& kind : all_settings()) {
    const auto found = options_.settings.find(kind.name);
    if (found != options_.settings.end()) set(kind, found->second, "program");
  }
  for (const auto& [name, value] : options_.settings) {
    if (find_setting(name) == nullptr) warn_unknown("the program", name, false);
  }
  for (const std::string& name : options_.locked) {
    if (find_setting(name) == nullptr) warn_unknown("the program's locks", name, false);
  }
}

void ConfigLoader::take_file(const std::string& path, bool must_exist) {
  const Result<std::optional<Bytes>> text = read_protected_file(path);
  if (!text) return warn(path + " is ignored: " + text.error().message);
  if (!*text) {
    if (must_exist) warn("configuration file not found: " + path);
    return;
  }
  const Result<std::vector<FileSetting>> values = parse_config((*text)->view());
  if (!values) return warn(path + " is ignored: " + values.error().message);
  const auto origin = [&](const FileSetting& value) { return path + ':' + std::to_string(value.line); };
  // In table order, so that of two settings in one file the overriding one wins regardless of the order in the file.
  for (const SettingSpec& kind : all_settings()) {
    const auto found = std::find_if(values->begin(), values->end(), [&](const auto& v) { return v.name == kind.name; });
    if (found != values->end()) take_file_setting(kind, *found, origin(*found));
  }
  for (const FileSetting& value : *values) {
    if (find_setting(value.name) == nullptr) warn_unknown(origin(value), value.name, false);
  }
}

void ConfigLoader::take_file_setting(const SettingSpec& kind, const FileSetting& value, std::string origin) {
  const char separator = kind.format.separator;
  if (value.values.size() != 1 && separator == 0) {
    return warn(origin + ": " + kind.name + " takes one value, not a list");
  }
  const std::string text = join_strings(value.values, {}, std::string_view(&separator, 1));
  const bool relative = kind.is_path() && std::any_of(value.values.begin(), value.values.end(), [](const auto& path) {
                          return !path.empty() && path.front() != '/' && path.front() != '$';
                        });
  if (relative)
    return warn(origin + ": " + kind.name + ": '" + text + "' is not an absolute path; use an absolute path");
  set(kind, text, std::move(origin));
}

void ConfigLoader::take_variables() {
  bool any = false;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, kPrefix.data(), kPrefix.size()) != 0) continue;
    const std::string name(*entry, std::strcspn(*entry, "="));
    any = true;
    // Uses environment_variable, so that a program with elevated privileges neither applies nor reports them.
    if (is_other_variable(name)) continue;
    if (!environment_variable(name.c_str())) continue;
    const auto kinds = all_settings();
    const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const auto& k) { return name == k.variable; });
    if (!known) warn_unknown("the environment", name, true);
  }
  if (!any) return;
  for (const SettingSpec& kind : all_settings()) {
    const auto value = environment_variable(kind.variable);
    if (value && !value->empty()) set(kind, *value, kind.variable);
  }
}

// Locking `cache.dir` or `cache.path` locks both, because either one could be used to bypass the other.
const char* ConfigLoader::locked_by(const SettingSpec& kind) const {
  for (const std::string& name : options_.locked) {
    if (name == kind.name || (is_cache_place(name) && is_cache_place(kind.name))) return name.c_str();
  }
  return nullptr;
}

void ConfigLoader::set(const SettingSpec& kind, const std::string& text, std::string origin) {
  if (const char* lock = locked_by(kind); lock != nullptr && origin != "program") {
    return warn(origin + ": " + kind.name + " is ignored: the program locked " + lock);
  }
  const bool cache_place = is_cache_place(kind.name);
  if (cache_place && text.find_first_not_of(':') == std::string::npos) return;  // an empty value selects no directory
  if (const Status applied = kind.apply(config_, text); !applied) {
    return warn(origin + ": " + kind.name + ": " + applied.error().message);
  }
  if (cache_place) cache_place_ = kind.name;
  Setting& setting = config_.settings[static_cast<std::size_t>(&kind - all_settings().data())];
  setting.value = kind.format.form == Format::Form::Location ? visible_url(text) : text;
  setting.origin = std::move(origin);
}

// Determines the default directory only when it is needed: without a home directory this creates a directory.
void ConfigLoader::show_cache_place() {
  if (config_.cache_path.empty()) {
    const Result<std::string> place = default_cache_directory();
    if (place) {
      config_.cache_path.push_back(*place);
    } else {
      emitter_.emit(Event::Kind::CacheUnavailable, "disk", "no directory for the cache: " + place.error().message);
    }
  }
  const std::string list = join_strings(config_.cache_path, {}, ":");
  for (Setting& setting : config_.settings) {
    if (!is_cache_place(setting.name)) continue;
    const bool whole = setting.name == "cache.path";
    setting.value = whole || config_.cache_path.empty() ? list : config_.cache_path.front();
    if (setting.name != cache_place_) setting.origin = cache_place_;
  }
}

void ConfigLoader::warn_unknown(const std::string& where, std::string_view name, bool variable) const {
  std::vector<std::string_view> candidates;
  for (const SettingSpec& kind : all_settings()) candidates.emplace_back(variable ? kind.variable : kind.name);
  if (variable) {
    candidates.emplace_back(kConfigVariable);
    for (const RuntimeVariable& other : kRuntimeVariables) candidates.emplace_back(other.name);
  }
  // Without a listener it would be printed, and the variable can be another program's.
  if (variable && !emitter_ && suggest_name(name, candidates).empty()) return;
  warn(where + ": " + unknown_name(variable ? "variable" : "setting", name, candidates, ""));
}

}  // namespace

Config Config::load(const SessionOptions& options, const EventEmitter& emitter, const std::string& system_file) {
  return ConfigLoader(options, emitter).load(system_file);
}

}  // namespace kiln
