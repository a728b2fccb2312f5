// SPDX-License-Identifier: Apache-2.0
// Parses arbitrary bytes as a trace and runs every audit rule on the result.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "analysis/audit/audit_compare.hpp"
#include "analysis/audit/device_usage.hpp"
#include "fuzz_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto trace = kiln::audit::parse_trace({reinterpret_cast<const char*>(data), size});
  if (!trace) return 0;
  for (std::size_t i = 1; i < trace->events.size(); ++i) {
    kiln::fuzz::require(trace->events[i - 1].id < trace->events[i].id, "events are sorted by id");
  }
  const kiln::audit::Report report = kiln::audit::run_audit(*trace);
  kiln::fuzz::require(
      report.counts.on_device + report.counts.on_cpu_device + report.counts.on_processor == report.counts.total,
      "each run is on a GPU, on a CPU device or on the CPU");
  kiln::fuzz::require(!report.cause.empty() && !report.change.empty(), "the report names cause and change");
  for (const kiln::audit::Finding& finding : report.findings) {
    kiln::fuzz::require(finding.rule != nullptr && finding.events.size() <= finding.count, "a finding has evidence");
  }
  kiln::fuzz::require(!kiln::audit::compare_audits(report, report).regressed(), "a trace is not worse than itself");
  kiln::audit::DeviceUsage usage;
  usage.add(*trace);
  kiln::fuzz::require(usage.counts.total == report.counts.total, "audit and device usage have equal counts");
  return 0;
}
