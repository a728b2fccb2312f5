// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <kiln/backend.hpp>
#include <kiln/export.hpp>

/// kiln-runtime selects which implementation of an operation runs, and where; docs/how-to/dispatch-cpu-gpu.md. It is a
/// separate library on top of kiln; kiln does not depend on it.
namespace kiln::runtime {

/// The execution mode that the user requests.
enum class Mode : unsigned char {
  Auto,  ///< the faster backend; falls back to the CPU if a device cannot run the operation, with an event
  Cpu,
  Gpu,  ///< on a device; an error names what is missing
};
KILN_API const char* to_string(Mode mode);
/// Returns the mode, or no value if the text is not `auto`, `cpu` or `gpu`.
KILN_API std::optional<Mode> parse_mode(std::string_view text);

/// The implementation that runs an operation.
enum class Backend : unsigned char { Cpu, OpenCl, Cuda };
KILN_API const char* to_string(Backend backend);
constexpr bool on_device(Backend backend) { return backend != Backend::Cpu; }
/// Returns the device backend of an implementation for which `on_device` is true.
constexpr kiln::Backend device_backend(Backend backend) {
  return backend == Backend::Cuda ? kiln::Backend::Cuda : kiln::Backend::OpenCl;
}

/// The source of a setting, in descending precedence.
enum class SettingSource : unsigned char { Override, Environment, Default };
KILN_API const char* to_string(SettingSource source);

}  // namespace kiln::runtime
