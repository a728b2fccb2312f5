// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "engine/status_snapshot.hpp"

namespace kiln {

/// The progress of one session of a process, for other processes (docs/internals/formats/small-files.md).
struct ProcessStatus {
  std::uint32_t pid = 0;
  /// start time of the process in clock ticks since boot; with `pid` it identifies the process
  std::uint64_t started = 0;
  std::uint64_t name_space = 0;        ///< pid namespace; `pid` is valid only in it
  std::string command;                 ///< command line without secrets
  std::chrono::nanoseconds since{};    ///< wall time of the first work
  std::chrono::nanoseconds written{};  ///< wall time of this snapshot
  StatusSnapshot snapshot;

  static constexpr std::size_t kMaxUnits = 128;
  static constexpr std::size_t kMaxBytes = std::size_t{256} << 10;  ///< size limit of the file
};

/// Truncates longer texts and drops units beyond `kMaxUnits`.
std::string encode(const ProcessStatus& status);
Result<ProcessStatus> decode_status(std::string_view bytes);

}  // namespace kiln
