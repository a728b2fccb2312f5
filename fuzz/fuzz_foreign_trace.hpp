// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "analysis/audit/audit.hpp"
#include "fuzz_check.hpp"

namespace kiln::fuzz {

/// Checks what holds for each trace of another profiler that was read, and audits it.
inline void check_foreign_trace(const audit::Trace& trace) {
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const audit::RecordedEvent& event = trace.events[i];
    require(event.id == i + 1, "events are numbered");
    require(std::isfinite(event.start_ms) && event.end_ms >= event.start_ms, "an event ends after its start");
    require(event.event.message.size() <= 256 && event.event.context.operation.size() <= 256, "names are short");
    require((event.event.context.dispatch == 0) == event.event.context.operation.empty(), "a run has an operation");
  }
  const audit::Report report = audit::run_audit(trace);
  require(!report.cause.empty() && !report.change.empty(), "the report names cause and change");
}

}  // namespace kiln::fuzz
