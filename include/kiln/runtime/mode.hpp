#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <kiln/export.hpp>

/// kiln-runtime: which of several implementations of an operation runs, and where; docs/runtime.md. A library of its
/// own on top of kiln, which knows nothing of it.
namespace kiln::runtime {

/// What whoever runs a program wants of it.
enum class Mode : unsigned char {
  Auto,  ///< wherever it is quicker; falls back to the processor where a device cannot, and says so
  Cpu,
  Gpu,  ///< on a device, or an error that says what is missing
};
KILN_API const char* to_string(Mode mode);
/// Nothing where the text is none of `auto`, `cpu`, `gpu`.
KILN_API std::optional<Mode> parse_mode(std::string_view text);

/// What carries an operation out.
enum class Backend : unsigned char { Cpu, OpenCl, Cuda };
KILN_API const char* to_string(Backend backend);
constexpr bool on_device(Backend backend) { return backend != Backend::Cpu; }

/// Where a choice came from, the strongest first.
enum class Source : unsigned char { Override, Environment, Default };
KILN_API const char* to_string(Source source);

}  // namespace kiln::runtime
