// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>
#include <kiln/unit.hpp>

namespace kiln {

/// Returns the entry points of a unit whose entry points are kernel symbols, as for a linker and for nvcc. `kernels`
/// are the symbols in the output. Returns Code::CompileFailed with `log` if one is missing.
Result<std::vector<EntryPoint>> entries_by_symbol(const Unit& unit, const std::vector<std::string>& kernels,
                                                  const std::string& log);

/// Returns the names of the kernels that a CUDA C++ source defines or declares, in order and without duplicates; a
/// template has `<…>` after its name. For messages: macros are not expanded, and included files are not read.
std::vector<std::string> kernel_names(std::string_view source);

/// Returns the first line of a compiler's log that reports an error, at most 300 bytes of it; empty if there is none.
std::string first_error_line(std::string_view log);

/// An entry point that NVRTC did not find.
struct UnknownEntry {
  std::string entry;
  std::string reason;  ///< first message of the compiler about it
  std::string log;     ///< the compiler's log without the lines about entry points
};
/// Returns the first unknown entry point of a failed compile; nothing if the compiler's log has other errors, too.
std::optional<UnknownEntry> find_unknown_entry(std::string_view log);
/// Returns the error for an unknown entry point of a unit: it lists the kernels of the unit's source.
Error unknown_entry_error(const Unit& unit, const UnknownEntry& unknown);

}  // namespace kiln
