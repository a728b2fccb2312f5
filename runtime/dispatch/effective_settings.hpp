// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>

namespace kiln::runtime {

/// The settings that one source has a value for: the program or the environment.
struct RequestedSettings {
  std::optional<Mode> mode;
  std::optional<bool> rewrites;
  std::optional<bool> deterministic;
  std::optional<bool> allow_cpu_device;
  std::optional<PrecisionPolicy> precision;
  std::optional<bool> time_stages;
};

/// The settings from environment variables.
struct EnvironmentSettings : RequestedSettings {
  /// Warnings about invalid values. Each one lists the valid values.
  std::vector<std::string> warnings;

  static EnvironmentSettings read();
};

/// An effective setting and its source.
template <class T>
struct EffectiveSetting {
  T value;
  SettingSource source = SettingSource::Default;
};

/// Returns the value of the strongest source: the program's, the variable's or the default.
template <class T>
EffectiveSetting<T> effective_setting(const std::optional<T>& program, const std::optional<T>& variable,
                                      T default_value) {
  if (program) return {*program, SettingSource::Override};
  if (variable) return {*variable, SettingSource::Environment};
  return {default_value, SettingSource::Default};
}

/// The effective settings.
struct EffectiveSettings {
  EffectiveSetting<Mode> mode{Mode::Auto};
  EffectiveSetting<bool> rewrites{true};
  EffectiveSetting<bool> deterministic{false};
  EffectiveSetting<bool> allow_cpu_device{false};
  EffectiveSetting<PrecisionPolicy> precision{PrecisionPolicy::Auto};
  EffectiveSetting<bool> time_stages{false};
  std::uint64_t generation = 0;  ///< incremented when a setting is set; choices of older generations are not cached

  static EffectiveSettings of(const RequestedSettings& program, const RequestedSettings& environment);
};

/// Returns the source of the mode for a message: "KILN_EXECUTION_MODE", "the program".
const char* mode_source_text(SettingSource source);

}  // namespace kiln::runtime
