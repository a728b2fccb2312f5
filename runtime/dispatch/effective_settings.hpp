#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kiln/runtime/mode.hpp>
#include <kiln/runtime/operation.hpp>

namespace kiln::runtime {

/// The settings from environment variables.
struct EnvironmentSettings {
  std::optional<Mode> mode;
  std::optional<bool> rewrites;
  std::optional<bool> allow_cpu_device;
  std::optional<PrecisionPolicy> precision;
  bool time_stages = false;
  /// Warnings about invalid values. Each one lists the valid values.
  std::vector<std::string> warnings;

  static EnvironmentSettings read();
};

/// The effective settings.
struct EffectiveSettings {
  Mode mode = Mode::Auto;
  ModeSource source = ModeSource::Default;
  bool rewrites = true;
  bool allow_cpu_device = false;
  PrecisionPolicy precision = PrecisionPolicy::Auto;
  bool time_stages = false;
  std::uint64_t generation = 0;  ///< incremented when a setting is set; choices of older generations are not cached
};

/// Returns the source of the mode for a message: "KILN_EXECUTION_MODE", "the program".
const char* mode_source_text(ModeSource source);

}  // namespace kiln::runtime
