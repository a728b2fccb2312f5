#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "observe/trace_layout.hpp"

namespace kiln {

/// Whose trace it is.
struct TraceProcess {
  pid_t id = 0;
  std::string name;
  std::size_t dropped = 0;  ///< events that are missing
};

/// The layout in the trace event format, by the rules of docs/trace.md.
std::string trace_json(const TraceProcess& process, const TraceLayout& layout);

}  // namespace kiln
