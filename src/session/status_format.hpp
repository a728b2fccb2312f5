#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "warm/glance.hpp"

namespace kiln {

/// What a process tells others about one of its sessions (docs/status-format.md). A value.
struct ProcessStatus {
  std::uint32_t pid = 0;
  std::uint64_t started = 0;         ///< when the process was, in ticks since the machine was: with `pid` it names one
  std::uint64_t name_space = 0;      ///< of process ids: in another one `pid` is somebody else's
  std::string command;               ///< how it was called, without secrets
  std::chrono::nanoseconds since{};  ///< wall time of the first work
  std::chrono::nanoseconds written{};  ///< wall time of this
  Glance glance;

  static constexpr std::size_t kMostUnits = 128;
  static constexpr std::size_t kMostBytes = std::size_t{256} << 10;  ///< of the file
};

/// Longer texts are cut, and units beyond the most that there may be are left out.
std::string encode(const ProcessStatus& status);
Result<ProcessStatus> decode_status(std::string_view bytes);

}  // namespace kiln
