#include "session/config.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/environment.hpp"
#include "base/files.hpp"
#include "base/words.hpp"
#include "session/config_file.hpp"
#include "session/guarded_file.hpp"
#include "session/settings.hpp"

extern char** environ;

namespace kiln {
namespace {

constexpr std::string_view kPrefix = "KILN_";
constexpr const char* kConfigVariable = "KILN_CONFIG";
// Variables that are no settings of a session: of files, and of the library on top (docs/runtime.md).
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

class Loader {
 public:
  Loader(const SessionOptions& options, const Observer& observer) : options_(options), observer_(observer) {}

  Config load(const std::string& system_file);

 private:
  void take_defaults();
  void take_program();
  void take_file(const std::string& path, bool must_exist);
  void take_values(const std::string& path, std::vector<FileSetting> values);
  void take_variables();
  void show_cache_place();

  // A value for a setting from a source stronger than all before; `index` is its place in the table.
  void set(std::size_t index, const std::string& text, std::string origin);
  const char* locked_by(const SettingKind& kind) const;
  void warn(std::string message) const { observer_.tell(Event::Kind::Configuration, "", std::move(message)); }
  void warn_unknown(const std::string& where, std::string_view name, bool variable) const;

  const SessionOptions& options_;
  const Observer& observer_;
  Config config_;
  const char* cache_place_ = "cache.dir";  // which of the two settings is in force
};

Config Loader::load(const std::string& system_file) {
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

void Loader::take_defaults() {
  const auto kinds = setting_kinds();
  config_.settings.reserve(kinds.size());
  for (const SettingKind& kind : kinds) {
    config_.settings.push_back({kind.name, kind.default_value, "default", locked_by(kind) != nullptr});
    (void)kind.apply(config_, kind.default_value);  // the table's own values are good, which a test checks
  }
}

void Loader::take_program() {
  const auto kinds = setting_kinds();
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

void Loader::take_file(const std::string& path, bool must_exist) {
  const Result<std::optional<Bytes>> text = read_guarded_file(path);
  if (!text) return warn(path + " is ignored: " + text.error().message);
  if (!*text) {
    if (must_exist) warn("there is no configuration file " + path);
    return;
  }
  Result<std::vector<FileSetting>> values = parse_config((*text)->view());
  if (!values) return warn(path + " is ignored: " + values.error().message);
  take_values(path, std::move(*values));
}

// In the table's order, so that of two settings in one file the overriding one wins whatever the file's order.
void Loader::take_values(const std::string& path, std::vector<FileSetting> values) {
  const auto kinds = setting_kinds();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const SettingKind& kind = kinds[i];
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
      warn(origin + ": " + kind.name + ": '" + text + "' is not absolute; give the whole path");
    } else {
      set(i, text, origin);
    }
  }
  for (const FileSetting& value : values) {
    if (find_setting(value.name) == nullptr) warn_unknown(path + ':' + std::to_string(value.line), value.name, false);
  }
}

void Loader::take_variables() {
  bool any = false;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, kPrefix.data(), kPrefix.size()) != 0) continue;
    const std::string name(*entry, std::strcspn(*entry, "="));
    any = true;
    // Through environment_variable, so that a program with raised rights neither takes nor reports them.
    if (std::find(std::begin(kOtherVariables), std::end(kOtherVariables), name) != std::end(kOtherVariables)) continue;
    if (!environment_variable(name.c_str())) continue;
    const auto kinds = setting_kinds();
    const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const auto& k) { return name == k.variable; });
    if (!known) warn_unknown("the environment", name, true);
  }
  if (!any) return;
  const auto kinds = setting_kinds();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const auto value = environment_variable(kinds[i].variable);
    if (value && !value->empty()) set(i, *value, kinds[i].variable);
  }
}

// Locking either of the two places of the cache locks both: otherwise the other would be the way round it.
const char* Loader::locked_by(const SettingKind& kind) const {
  for (const std::string& name : options_.locked) {
    if (name == kind.name || (is_cache_place(name) && is_cache_place(kind.name))) return name.c_str();
  }
  return nullptr;
}

void Loader::set(std::size_t index, const std::string& text, std::string origin) {
  const SettingKind& kind = setting_kinds()[index];
  if (const char* lock = locked_by(kind); lock != nullptr && origin != "program") {
    return warn(origin + ": " + kind.name + " stays as it is: the program locked " + lock);
  }
  if (const Status applied = kind.apply(config_, text); !applied) {
    return warn(origin + ": " + kind.name + ": " + applied.error().message);
  }
  if (is_cache_place(kind.name)) {
    if (text.empty()) return;  // no place is no choice of a place
    cache_place_ = kind.name;
  }
  Setting& setting = config_.settings[index];
  setting.value = text;
  setting.origin = std::move(origin);
}

// The default place is made up only now, when it is known to be needed: without a home it means making a folder.
void Loader::show_cache_place() {
  if (config_.cache_path.empty()) {
    const Result<std::string> place = default_cache_directory();
    if (place) {
      config_.cache_path.push_back(*place);
    } else {
      observer_.tell(Event::Kind::CacheUnavailable, "disk", "no place for a cache: " + place.error().message);
    }
  }
  const std::string list = joined(config_.cache_path, {}, ":");
  for (Setting& setting : config_.settings) {
    if (!is_cache_place(setting.name)) continue;
    const bool whole = setting.name == "cache.path";
    setting.value = whole || config_.cache_path.empty() ? list : config_.cache_path.front();
    if (setting.name != cache_place_) setting.origin = cache_place_;
  }
}

void Loader::warn_unknown(const std::string& where, std::string_view name, bool variable) const {
  if (!observer_) return;
  std::vector<std::string_view> candidates;
  for (const SettingKind& kind : setting_kinds()) candidates.emplace_back(variable ? kind.variable : kind.name);
  if (variable) candidates.insert(candidates.end(), std::begin(kOtherVariables), std::end(kOtherVariables));
  std::string message = where + ": kiln has no " + (variable ? "variable " : "setting ") + std::string(name);
  if (const std::string meant = closest(name, candidates); !meant.empty()) message += "; did you mean " + meant + "?";
  warn(std::move(message));
}

}  // namespace

Config Config::load(const SessionOptions& options, const Observer& observer, const std::string& system_file) {
  return Loader(options, observer).load(system_file);
}

}  // namespace kiln
