// Any bytes as a trace, and what was read through every rule of the audit.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz_check.hpp"
#include "runtime/health.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = kiln::audit::parse_trace({reinterpret_cast<const char*>(data), size});
  if (!trace) return 0;
  for (std::size_t i = 1; i < trace->events.size(); ++i) {
    kiln::fuzz::require(trace->events[i - 1].id < trace->events[i].id, "events are in the order of their numbers");
  }
  const kiln::audit::Report report = kiln::audit::examine(*trace);
  kiln::fuzz::require(report.counts.on_device + report.counts.on_processor == report.counts.total,
                      "each run is on a device or on the processor");
  kiln::fuzz::require(!report.cause.empty() && !report.change.empty(), "both questions are answered");
  for (const kiln::audit::Finding& finding : report.findings) {
    kiln::fuzz::require(finding.rule != nullptr && finding.events.size() <= finding.count, "a finding has evidence");
  }
  kiln::audit::Health health;
  health.add(*trace);
  kiln::fuzz::require(health.counts.total == report.counts.total, "an audit and the health count alike");
  return 0;
}
