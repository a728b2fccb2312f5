#include "runtime/health.hpp"

#include <algorithm>

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
  for (const RecordedEvent& event : trace.events) {
    if (!is(event, Event::Kind::FellBack)) continue;
    const std::string& operation = event.event.work.operation;
    const auto same = std::find_if(fallbacks.begin(), fallbacks.end(), [&](const Fallback& fallback) {
      return fallback.operation == operation && fallback.reason == event.event.message;
    });
    if (same != fallbacks.end()) {
      ++same->times;
    } else {
      fallbacks.push_back({operation, event.event.message, 1});
    }
  }
  std::stable_sort(fallbacks.begin(), fallbacks.end(),
                   [](const Fallback& a, const Fallback& b) { return a.times > b.times; });
}

}  // namespace kiln::audit
