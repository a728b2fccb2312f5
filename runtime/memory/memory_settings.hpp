// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <kiln/runtime/memory.hpp>

#include "runtime/settings/variable_reader.hpp"

namespace kiln::runtime {

/// The settings of memory that one source has a value for: the program or the environment.
struct RequestedMemory {
  std::optional<MemoryTier> tier;
  std::optional<std::uint64_t> limit;
  std::optional<unsigned> retries;

  static RequestedMemory read(VariableReader& variables);
};

/// Returns the effective settings. More retries than kMaxMemoryRetries count as kMaxMemoryRetries.
Memory::Settings effective_memory(const RequestedMemory& program, const RequestedMemory& environment);

}  // namespace kiln::runtime
