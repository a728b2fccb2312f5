// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "analysis/audit/trace_reader.hpp"
#include "base/format.hpp"

namespace kiln::report {

/// The event categories of the page. Each has a color.
enum class EventCategory : unsigned char {
  Request,
  Wait,
  Find,
  Compile,
  Load,
  Launch,
  Copy,
  Memory,
  Work,
  Problem,
  Other
};
/// Returns the name for style sheets and scripts.
const char* to_string(EventCategory mark);
EventCategory category_of(const Event& event);

/// Returns the name of a thread, or its id if the trace has no name.
std::string thread_name(const audit::Trace& trace, std::uint64_t thread);
/// Returns true for a thread of kiln, whose waits do not block the program.
bool is_background(const audit::Trace& trace, std::uint64_t thread);
/// Returns the unit of an event, or its operation and stage.
std::string subject_of(const Event& event);
/// Returns the measured duration in milliseconds.
double length_of(const audit::RecordedEvent& event);

}  // namespace kiln::report
