#include "session/config/config.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/files/files.hpp"
#include "base/format.hpp"
#include "base/process/environment.hpp"
#include "session/config/config_file.hpp"
#include "session/config/protected_file.hpp"
#include "session/config/settings.hpp"

extern char** environ;

namespace kiln {
namespace {

constexpr std::string_view kPrefix = "KILN_";
constexpr const char* kConfigVariable = "KILN_CONFIG";
// KILN_* variables that are not session settings: those of configuration files and of kiln-runtime (docs/runtime.md).
constexpr std::string_view kOtherVariables[] = {kConfigVariable,    "KILN_EXECUTION_MODE", "KILN_REWRITES",
                                                "KILN_CALIBRATION", "KILN_CALIBRATE",      "KILN_CALIBRATE_QUICK",
                                                "KILN_TIME_STAGES"};

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
  void take_values(const std::string& path, std::vector<FileSetting> values);
  void take_variables();
  void show_cache_place();

  // Sets a setting from a source that overrides all previous ones. `index` is its index in the table.
  void set(std::size_t index, const std::string& text, std::string origin);
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
  const auto kinds = all_settings();
  config_.settings.reserve(kinds.size());
  for (const SettingSpec& kind : kinds) {
    config_.settings.push_back({kind.name, kind.default_value, "default", locked_by(kind) != nullptr});
    (void)kind.apply(config_, kind.default_value);  // the table's own values are valid; a test checks this
  }
}

void ConfigLoader::take_program() {
  const auto kinds = all_settings();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto found = options_.settings.find(kinds[i].name);
    if (found != options_.settings.end()) set(i, found->second, "program");
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
  Result<std::vector<FileSetting>> values = parse_config((*text)->view());
  if (!values) return warn(path + " is ignored: " + values.error().message);
  take_values(path, std::move(*values));
}

// Processes settings in table order, so that of two settings in one file the overriding one wins regardless of the
// order in the file.
void ConfigLoader::take_values(const std::string& path, std::vector<FileSetting> values) {
  const auto kinds = all_settings();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const SettingSpec& kind = kinds[i];
    const auto found = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.name == kind.name; });
    if (found == values.end()) continue;
    const std::string origin = path + ':' + std::to_string(found->line);
    if (found->values.size() != 1 && kind.separator == 0) {
      warn(origin + ": " + kind.name + " takes one value, not a list");
      continue;
    }
    std::string text;
    bool relative = false;
    for (const std::string& member : found->values) {
      if (!text.empty()) text += kind.separator;
      text += member;
      relative = relative || (kind.is_path && !member.empty() && member.front() != '/' && member.front() != '$');
    }
    if (relative) {
      warn(origin + ": " + kind.name + ": '" + text + "' is not an absolute path; use an absolute path");
    } else {
      set(i, text, origin);
    }
  }
  for (const FileSetting& value : values) {
    if (find_setting(value.name) == nullptr) warn_unknown(path + ':' + std::to_string(value.line), value.name, false);
  }
}

void ConfigLoader::take_variables() {
  bool any = false;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, kPrefix.data(), kPrefix.size()) != 0) continue;
    const std::string name(*entry, std::strcspn(*entry, "="));
    any = true;
    // Uses environment_variable, so that a program with elevated privileges neither applies nor reports them.
    if (std::find(std::begin(kOtherVariables), std::end(kOtherVariables), name) != std::end(kOtherVariables)) continue;
    if (!environment_variable(name.c_str())) continue;
    const auto kinds = all_settings();
    const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const auto& k) { return name == k.variable; });
    if (!known) warn_unknown("the environment", name, true);
  }
  if (!any) return;
  const auto kinds = all_settings();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto value = environment_variable(kinds[i].variable);
    if (value && !value->empty()) set(i, *value, kinds[i].variable);
  }
}

// Locking `cache.dir` or `cache.path` locks both, because either one could be used to bypass the other.
const char* ConfigLoader::locked_by(const SettingSpec& kind) const {
  for (const std::string& name : options_.locked) {
    if (name == kind.name || (is_cache_place(name) && is_cache_place(kind.name))) return name.c_str();
  }
  return nullptr;
}

void ConfigLoader::set(std::size_t index, const std::string& text, std::string origin) {
  const SettingSpec& kind = all_settings()[index];
  if (const char* lock = locked_by(kind); lock != nullptr && origin != "program") {
    return warn(origin + ": " + kind.name + " is ignored: the program locked " + lock);
  }
  if (const Status applied = kind.apply(config_, text); !applied) {
    return warn(origin + ": " + kind.name + ": " + applied.error().message);
  }
  if (is_cache_place(kind.name)) {
    if (text.empty()) return;  // an empty value does not select a directory
    cache_place_ = kind.name;
  }
  Setting& setting = config_.settings[index];
  setting.value = text;
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
  if (!emitter_) return;
  std::vector<std::string_view> candidates;
  for (const SettingSpec& kind : all_settings()) candidates.emplace_back(variable ? kind.variable : kind.name);
  if (variable) candidates.insert(candidates.end(), std::begin(kOtherVariables), std::end(kOtherVariables));
  std::string message = where + ": unknown " + (variable ? "variable " : "setting ") + std::string(name);
  if (const std::string meant = suggest_name(name, candidates); !meant.empty())
    message += "; did you mean " + meant + "?";
  warn(std::move(message));
}

}  // namespace

Config Config::load(const SessionOptions& options, const EventEmitter& emitter, const std::string& system_file) {
  return ConfigLoader(options, emitter).load(system_file);
}

}  // namespace kiln
