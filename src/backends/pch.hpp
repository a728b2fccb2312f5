// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/file_access.hpp"
#include "base/files/files.hpp"

namespace kiln {

/// The start of the path by which a worker requests a precompiled header without a name from its host. No file can have
/// such a path.
inline constexpr std::string_view kNamelessPch = "/proc/kiln-pch/";
inline bool is_nameless_pch(std::string_view path) { return path.starts_with(kNamelessPch); }

/// The use of a precompiled header that a compile is asked to make.
struct PchRequest {
  enum class Mode : std::uint8_t { None = 0, Create = 1, Use = 2 };
  Mode mode = Mode::None;
  std::string path;                  ///< absolute path of the file to read or write
  std::uint64_t size = 0;            ///< for Use: required size of the file, in bytes
  std::uint64_t checksum = 0;        ///< for Use: required XXH3 checksum of the file
  std::string log{};                 ///< for Use: the compiler's log of the headers (`PchResult::log`), which it omits
  bool log_checked = false;          ///< for Use: `PchResult::log_checked`
  std::shared_ptr<const Fd> file{};  ///< in the host only: the file if it has no name (`is_nameless_pch(path)`)
};

/// The result for a precompiled header.
struct PchResult {
  enum class Outcome : std::uint8_t {
    None = 0,         ///< nothing was requested, or the unit failed to compile
    Created = 1,      ///< the file was written
    Used = 2,         ///< the headers were not read again
    Rejected = 3,     ///< it could not be used or created; the unit was compiled in full
    Unavailable = 4,  ///< this worker can neither create nor use any
  };
  Outcome outcome = Outcome::None;
  std::string reason{};                    ///< for Rejected and Unavailable, and never empty there
  std::uint64_t size = 0;                  ///< for Created
  std::uint64_t checksum = 0;              ///< for Created
  std::vector<FileAccess> observations{};  ///< for Created: accesses recorded until the file was written
  std::string log{};                       ///< for Created: what the compiler logged until the file was written
  /// True if a compile without a precompiled header starts its log with `log`. It is checked when a unit first adds
  /// warnings of its own.
  bool log_checked = false;
  bool permanent = false;           ///< for Rejected: true if it stays so as long as the headers do not change
  std::uint64_t heap_required = 0;  ///< for Rejected, in the worker only: required heap size if the heap was too small
};

}  // namespace kiln
