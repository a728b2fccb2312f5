// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "events/trace_layout.hpp"

namespace kiln {

/// The process that a trace describes.
struct TraceProcess {
  pid_t id = 0;
  std::string name;
  std::size_t dropped = 0;  ///< number of missing events
  std::string command;      ///< command line without secrets
  std::string date;         ///< time at which the trace was written: 2026-11-15T18:20:00Z
};

/// The format name in the first event of a trace. Readers accept this version only.
inline constexpr const char* kTraceFormat = "kiln trace 2";

/// Returns the layout in the trace event format, by the rules of docs/internals/trace-format.md.
std::string trace_json(const TraceProcess& process, const TraceLayout& layout);

}  // namespace kiln
