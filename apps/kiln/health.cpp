// kiln health: how much of what traces have ran on a device.
#include "runtime/health.hpp"

#include <cstdio>

#include "apps/kiln/commands.hpp"
#include "apps/kiln/exit_code.hpp"
#include "apps/kiln/render_audit_json.hpp"

namespace kiln::cli {
namespace {

std::vector<std::string> counts_row(const std::string& name, const audit::DispatchCounts& counts) {
  char rate[16];
  std::snprintf(rate, sizeof rate, "%.1f %%", counts.acceleration() * 100);
  return {name,
          std::to_string(counts.total),
          std::to_string(counts.on_device),
          std::to_string(counts.on_processor),
          std::to_string(counts.fallbacks),
          counts.total == 0 ? "" : rate};
}

void print_health(const audit::Health& health, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"operation", "runs", "device", "processor", "fallbacks", "rate"}};
  for (const auto& [name, counts] : health.operations) rows.push_back(counts_row(printable(name), counts));
  rows.push_back(counts_row("all", health.counts));
  console.print(table_text(rows));
  for (const audit::Health::Fallback& each : health.fallbacks) {
    console.print(printable(each.operation) + " fell back " + std::to_string(each.times) +
                  (each.times == 1 ? " time: " : " times: ") + printable(each.reason));
  }
}

}  // namespace

int health_command(const Arguments& arguments, Console& console) {
  audit::Health health;
  int code = kDone;
  for (const std::string& path : arguments.files) {
    const Result<audit::Trace> trace = audit::read_trace(path);
    if (trace) {
      health.add(*trace);
    } else if (const int failed = report(trace.error(), console); code == kDone) {
      code = failed;
    }
  }
  if (health.dropped != 0) {
    console.warn("the traces lack " + std::to_string(health.dropped) + " events: they were full, and counts are low");
  }
  if (arguments.json) {
    console.print(health_json(health));
  } else if (health.traces != 0) {
    print_health(health, console);
  }
  return code;
}

}  // namespace kiln::cli
