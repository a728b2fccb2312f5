#include "runtime/health.hpp"

#include <algorithm>
#include <utility>

#include "runtime/audit_view.hpp"

namespace kiln::audit {

void Health::add(const Trace& trace) {
  const View view(trace);
  ++traces;
  dropped += trace.dropped;
  for (const Run& run : view.runs) {
    count_run(run, counts);
    count_run(run, operations[run.operation]);
  }
  std::map<std::pair<std::string, std::string>, std::uint64_t> times;
  for (const Fallback& each : fallbacks) times[{each.operation, each.reason}] = each.times;
  for (const RecordedEvent& event : trace.events) {
    if (is(event, Event::Kind::FellBack)) ++times[{event.event.work.operation, event.event.message}];
  }
  fallbacks.clear();
  for (const auto& [what, count] : times) fallbacks.push_back({what.first, what.second, count});
  std::stable_sort(fallbacks.begin(), fallbacks.end(),
                   [](const Fallback& a, const Fallback& b) { return a.times > b.times; });
}

}  // namespace kiln::audit
