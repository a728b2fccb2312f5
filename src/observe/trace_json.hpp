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
  std::string command;      ///< how it was called, without what may be secret
  std::string date;         ///< when the trace was written: 2026-11-15T18:20:00Z
};

/// What the first event of a trace of kiln's calls it: what reads traces looks for this version and no other.
inline constexpr const char* kTraceFormat = "kiln trace 1";

/// The layout in the trace event format, by the rules of docs/trace.md.
std::string trace_json(const TraceProcess& process, const TraceLayout& layout);

}  // namespace kiln
