#include "runtime/dispatch/effective_settings.hpp"

#include "base/process/environment.hpp"

namespace kiln::runtime {
namespace {

constexpr const char* kMode = "KILN_EXECUTION_MODE";
constexpr const char* kRewrites = "KILN_REWRITES";
constexpr const char* kAllowCpuDevice = "KILN_ALLOW_CPU_DEVICE";
constexpr const char* kPrecision = "KILN_PRECISION";
constexpr const char* kTimeStages = "KILN_TIME_STAGES";

// Returns the value of a variable; empty variables count as not set.
std::optional<std::string> value_of(const char* name) {
  auto value = environment_variable(name);
  if (value && value->empty()) value.reset();
  return value;
}

std::optional<bool> parse_switch(const std::string& text) {
  if (text == "on" || text == "1") return true;
  if (text == "off" || text == "0") return false;
  return std::nullopt;
}

// Returns a warning about an invalid variable. It does not include the value, which can be any text of any length.
std::string warning(const char* name, const char* good) {
  return std::string(name) + " must be one of " + good + "; the value is ignored";
}

}  // namespace

EnvironmentSettings EnvironmentSettings::read() {
  EnvironmentSettings made;
  if (const auto text = value_of(kMode)) {
    made.mode = parse_mode(*text);
    if (!made.mode) made.warnings.push_back(warning(kMode, "auto, cpu, gpu"));
  }
  if (const auto text = value_of(kRewrites)) {
    made.rewrites = parse_switch(*text);
    if (!made.rewrites) made.warnings.push_back(warning(kRewrites, "on, off"));
  }
  if (const auto text = value_of(kAllowCpuDevice)) {
    made.allow_cpu_device = parse_switch(*text);
    if (!made.allow_cpu_device) made.warnings.push_back(warning(kAllowCpuDevice, "1, 0"));
  }
  if (const auto text = value_of(kPrecision)) {
    made.precision = parse_precision_policy(*text);
    if (!made.precision) made.warnings.push_back(warning(kPrecision, "auto, fp64"));
  }
  if (const auto text = value_of(kTimeStages)) {
    const auto on = parse_switch(*text);
    made.time_stages = on.value_or(false);
    if (!on) made.warnings.push_back(warning(kTimeStages, "1, 0"));
  }
  return made;
}

const char* mode_source_text(ModeSource source) {
  switch (source) {
    case ModeSource::Override: return "the program";
    case ModeSource::Environment: return kMode;
    case ModeSource::Default: break;
  }
  return "default";
}

}  // namespace kiln::runtime
