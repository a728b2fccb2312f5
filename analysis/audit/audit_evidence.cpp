// SPDX-License-Identifier: Apache-2.0
// What the evidence of a trace says: who waited, what is missing, and whether the path is CPU-shaped GPU code.
#include <algorithm>
#include <unordered_map>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

// Returns for each run whether it is nested in a numbered run of the same thread.
std::vector<bool> nested_runs(const View& view) {
  std::vector<bool> nested(view.runs.size());
  std::vector<std::size_t> order(view.runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return view.runs[a].events.front()->id < view.runs[b].events.front()->id;
  });
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> open;  // last event of each open run, by thread
  for (const std::size_t i : order) {
    const Run& run = view.runs[i];
    if (run.number == 0) continue;
    std::vector<std::uint64_t>& outer = open[run.events.front()->thread];
    while (!outer.empty() && outer.back() < run.events.front()->id) outer.pop_back();
    nested[i] = !outer.empty();
    outer.push_back(run.events.back()->id);
  }
  return nested;
}

void add_wait(const View& view, const RecordedEvent& event, WaitSum& to) {
  if (to.count++ == 0) {
    to.operation = view.operation_of(event);
    to.stage = event.event.context.stage;
    to.first_event = event.id;
  }
  to.ms += event.event.ms;
}

void add_missing(Report& report, std::string what, std::string action, bool decisive = true) {
  report.missing.push_back({std::move(what), std::move(action), decisive});
}

// Kinds of events that prove something about a path.
struct SeenKinds {
  bool launch = false;
  bool other_work = false;  // a copy or a wait
  bool decision = false;
};

SeenKinds seen_in(const Trace& trace) {
  SeenKinds seen;
  for (const RecordedEvent& event : trace.events) {
    seen.launch = seen.launch || is_launch(event);
    seen.other_work = seen.other_work || is(event, Event::Kind::Copied) || is(event, Event::Kind::Synchronized);
    seen.decision = seen.decision || is(event, runtime::events::kDecided) || is(event, runtime::events::kDispatched) ||
                    is(event, runtime::events::kFellBack);
  }
  return seen;
}

void find_missing_launches(const View& view, Report& report) {
  const SeenKinds seen = seen_in(view.trace);
  if (seen.launch || seen.decision) return;
  const bool declared = std::any_of(view.runs.begin(), view.runs.end(), [](const Run& run) { return !run.implicit; });
  if (declared) {
    add_missing(report, "operations launched nothing, and no decision says why",
                "decide by kiln-runtime (Dispatch), or record the launches of the program");
  } else if (seen.other_work) {
    add_missing(report, "the trace has copies or waits, but no launch and no decision",
                "record the launches too: launch by kiln, or audit a trace of PyTorch's profiler or of Nsight Systems");
  } else {
    add_missing(report, "the trace has no launch, copy, wait or decision",
                "trace the program while it does its work (KILN_TRACE), or audit a trace of PyTorch's profiler or of "
                "Nsight Systems if it does not launch by kiln");
  }
}

// Findings that make a GPU path behave like CPU code: the checks before the shape of launches.
bool shows_cpu_shape(const Finding& finding) {
  return is_blocker(finding) && finding.rule->step <= Check::NoHostBatching;
}

}  // namespace

void find_waits(const View& view, Report& report) {
  const std::vector<bool> nested = nested_runs(view);
  for (const RecordedEvent& event : view.trace.events) {
    if (!is(event, Event::Kind::Synchronized)) continue;
    const OperationContext& work = event.event.context;
    const Run* run = view.run_of(event);
    const bool dispatched = run != nullptr && (run->dispatched != nullptr || run->decided != nullptr);
    const bool inner = run != nullptr && nested[static_cast<std::size_t>(run - view.runs.data())];
    // A stage outside of a declared operation is a range of a framework that the program called.
    const bool of_wrapper = dispatched || inner || !work.stage.empty();
    Waits& waits = report.waits;
    add_wait(view, event, work.purpose == Purpose::Trace ? waits.tracing : of_wrapper ? waits.wrapper : waits.caller);
  }
}

void find_missing(const View& view, Report& report) {
  for (const std::string& kind : view.trace.not_recorded) {
    // Without allocations the audit cannot find loops of allocations; its other rules work.
    add_missing(report, std::string("the trace was recorded without ") + kind,
                "record it with " + kind + " (docs/how-to/audit-a-trace.md lists the options of each profiler)",
                kind.find("allocation") == std::string::npos);
  }
  if (view.trace.dropped != 0) {
    add_missing(report, format_count(view.trace.dropped, "event is", "events are") + " missing at the end of the trace",
                "trace a shorter run; the audit sees only recorded events");
  }
  if (view.trace.not_understood != 0) {
    add_missing(report,
                format_count(view.trace.not_understood, "event is", "events are") +
                    " of a kind that this version does not know",
                "audit with the version of kiln that wrote the trace, or a newer one");
  }
  find_missing_launches(view, report);
}

void judge_shape(Report& report) {
  const std::uint64_t launches = report.launches_on_gpu + report.launches_on_cpu_device;
  std::string found;
  for (const Finding& finding : report.findings) {
    if (!shows_cpu_shape(finding)) continue;
    found += (found.empty() ? "" : "; ") + std::string(finding.rule->name) + " in " +
             (finding.operation.empty() ? "the trace" : finding.operation) + ": " + finding.text;
  }
  if (!found.empty()) {
    report.cpu_shaped = Answer::Supported;
    report.cpu_shaped_evidence = found;
  } else if (report.lacks_evidence()) {
    report.cpu_shaped_evidence =
        std::find_if(report.missing.begin(), report.missing.end(), [](const MissingEvidence& missing) {
          return missing.decisive;
        })->what;
  } else if (launches == 0) {
    report.cpu_shaped_evidence = "nothing was launched; the program decided to run on the CPU";
  } else if (const std::uint64_t unclear = report.unclear_reads(); unclear != 0) {
    report.cpu_shaped_evidence = format_count(unclear, "read", "reads") +
                                 " between launches: it is unclear whether later work depends on the host";
  } else {
    report.cpu_shaped = Answer::Disproved;
    report.cpu_shaped_evidence = format_count(launches, "launch", "launches") +
                                 (report.launches_on_gpu == 0 ? " on a CPU device; no GPU was used" : "") +
                                 "; no step on the host, no read that feeds device work, no wait between launches and "
                                 "no launch per group";
  }
}

}  // namespace kiln::audit
