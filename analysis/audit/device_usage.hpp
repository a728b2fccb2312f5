// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/audit/audit.hpp"

namespace kiln::audit {

/// The number of operations that ran on a device, over any number of traces. Not thread-safe.
struct DeviceUsage {
  struct Fallback {
    std::string operation;
    std::string reason;
    std::uint64_t count = 0;
  };
  DispatchCounts counts;
  std::map<std::string, DispatchCounts> operations;
  std::vector<Fallback> fallbacks;  ///< most frequent first
  std::uint64_t traces = 0;
  std::uint64_t dropped = 0;  ///< number of events that the programs dropped

  void add(const Trace& trace);
};

}  // namespace kiln::audit
