// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/device_usage.hpp"

#include <algorithm>
#include <utility>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {

void DeviceUsage::add(const Trace& trace) {
  const View view(trace);
  ++traces;
  dropped += trace.dropped;
  for (const Run& run : view.runs) {
    count_run(run, counts);
    if (!run.implicit) count_run(run, operations[run.operation]);
  }
  std::map<std::pair<std::string, std::string>, std::uint64_t> fallback_counts;
  for (const Fallback& each : fallbacks) fallback_counts[{each.operation, each.reason}] = each.count;
  for (const RecordedEvent& event : trace.events) {
    if (is(event, runtime::events::kFellBack)) ++fallback_counts[{event.event.context.operation, event.event.message}];
  }
  fallbacks.clear();
  for (const auto& [what, count] : fallback_counts) fallbacks.push_back({what.first, what.second, count});
  std::stable_sort(fallbacks.begin(), fallbacks.end(),
                   [](const Fallback& a, const Fallback& b) { return a.count > b.count; });
}

}  // namespace kiln::audit
