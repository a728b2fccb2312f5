// SPDX-License-Identifier: Apache-2.0
// kiln device-usage: the share of runs in traces that used a device.
#include "analysis/audit/device_usage.hpp"

#include <cstdio>

#include "apps/kiln/analysis/render_audit_json.hpp"
#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"

namespace kiln::cli {
namespace {

std::vector<std::string> counts_row(const std::string& name, const audit::DispatchCounts& counts) {
  char rate[16];
  std::snprintf(rate, sizeof rate, "%.1f %%", counts.acceleration() * 100);
  return {name,
          std::to_string(counts.total),
          std::to_string(counts.on_device),
          std::to_string(counts.on_cpu_device),
          std::to_string(counts.on_processor),
          std::to_string(counts.fallbacks),
          counts.total == 0 ? "" : rate};
}

void print_usage(const audit::DeviceUsage& usage, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"operation", "runs", "gpu", "cpu device", "cpu", "fallbacks", "rate"}};
  for (const auto& [name, counts] : usage.operations) rows.push_back(counts_row(printable(name), counts));
  rows.push_back(counts_row("all", usage.counts));
  console.print(table_text(rows));
  if (usage.counts.on_cpu_device != 0) {
    console.print("a CPU device is not a GPU: its runs do not count for the rate");
  }
  if (usage.counts.undeclared != 0) {
    console.print(format_count(usage.counts.undeclared, "implicit operation is", "implicit operations are") +
                  " not counted: the program declared no operation for its launches");
  }
  for (const audit::DeviceUsage::Fallback& each : usage.fallbacks) {
    console.print(printable(each.operation) + " fell back " + std::to_string(each.count) +
                  (each.count == 1 ? " time: " : " times: ") + printable(each.reason));
  }
}

}  // namespace

int device_usage_command(const Arguments& arguments, Console& console) {
  audit::DeviceUsage usage;
  int code = kSuccess;
  for (const std::string& path : arguments.files) {
    const Result<audit::Trace> trace = audit::read_trace(path);
    if (trace) {
      usage.add(*trace);
    } else if (const int failed = report(trace.error(), console); code == kSuccess) {
      code = failed;
    }
  }
  if (usage.dropped != 0) {
    console.warn("the traces are incomplete: " + std::to_string(usage.dropped) +
                 " events were dropped, so the counts are too low");
  }
  if (arguments.json) {
    console.print(device_usage_json(usage));
  } else if (usage.traces != 0) {
    print_usage(usage, console);
  }
  return code;
}

}  // namespace kiln::cli
