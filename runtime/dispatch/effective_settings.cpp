// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatch/effective_settings.hpp"

#include "runtime/settings/variable_reader.hpp"

namespace kiln::runtime {
namespace {

constexpr const char* kMode = "KILN_EXECUTION_MODE";

}  // namespace

EnvironmentSettings EnvironmentSettings::read() {
  VariableReader variables;
  EnvironmentSettings made;
  made.mode = variables.read(kMode, &parse_mode);
  made.rewrites = variables.boolean("KILN_REWRITES");
  made.deterministic = variables.boolean("KILN_DETERMINISTIC");
  made.allow_cpu_device = variables.boolean("KILN_ALLOW_CPU_DEVICE");
  made.precision = variables.read("KILN_PRECISION", &parse_precision_policy);
  made.time_stages = variables.boolean("KILN_TIME_STAGES");
  made.warnings = variables.warnings();
  return made;
}

EffectiveSettings EffectiveSettings::of(const RequestedSettings& program, const RequestedSettings& environment) {
  EffectiveSettings made;
  const auto apply = [&](auto EffectiveSettings::*to, auto RequestedSettings::*from) {
    made.*to = effective_setting(program.*from, environment.*from, (made.*to).value);
  };
  apply(&EffectiveSettings::mode, &RequestedSettings::mode);
  apply(&EffectiveSettings::rewrites, &RequestedSettings::rewrites);
  apply(&EffectiveSettings::deterministic, &RequestedSettings::deterministic);
  apply(&EffectiveSettings::allow_cpu_device, &RequestedSettings::allow_cpu_device);
  apply(&EffectiveSettings::precision, &RequestedSettings::precision);
  apply(&EffectiveSettings::time_stages, &RequestedSettings::time_stages);
  return made;
}

const char* mode_source_text(SettingSource source) {
  switch (source) {
    case SettingSource::Override: return "the program";
    case SettingSource::Environment: return kMode;
    case SettingSource::Default: break;
  }
  return "default";
}

}  // namespace kiln::runtime
