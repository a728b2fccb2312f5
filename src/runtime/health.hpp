#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/audit.hpp"

namespace kiln::audit {

/// How often operations ran on a device, over any number of traces. A value.
struct Health {
  struct Fallback {
    std::string operation;
    std::string reason;
    std::uint64_t times = 0;
  };
  DispatchCounts counts;
  std::map<std::string, DispatchCounts> operations;
  std::vector<Fallback> fallbacks;  ///< the most frequent first
  std::uint64_t traces = 0;
  std::uint64_t dropped = 0;  ///< events that the traces do not have

  void add(const Trace& trace);
};

}  // namespace kiln::audit
