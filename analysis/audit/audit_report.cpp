// SPDX-License-Identifier: Apache-2.0
// The parts of an audit report other than the findings: facts about the run, the main cause and the suggested change.
#include <algorithm>
#include <cctype>
#include <tuple>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

constexpr std::size_t kMaxLongestStages = 3;
constexpr std::size_t kMaxTargets = 3;

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// A decision names the device. A launch names at least the target for which the kernel was compiled.
std::vector<std::string> devices_of(const Trace& trace) {
  std::vector<std::string> decided;
  std::vector<std::string> launched;
  const auto name_of = [](const Event& event) {
    return event.target.empty() || !event.cpu_device ? event.target : event.target + " (CPU device, not a GPU)";
  };
  for (const RecordedEvent& event : trace.events) {
    if (is(event, runtime::events::kDecided) && is_device(event.event.selected))
      add_name(decided, name_of(event.event));
    if (is_launch(event)) add_name(launched, name_of(event.event));
  }
  return decided.empty() ? launched : decided;
}

std::vector<Selection> selections_of(const Trace& trace) {
  std::map<std::tuple<std::string, std::string, std::string>, Selection> selections;
  for (const RecordedEvent& event : trace.events) {
    if (!is(event, runtime::events::kDecided)) continue;
    const Event& reported = event.event;
    const std::string& name = reported.context.operation.empty() ? reported.unit : reported.context.operation;
    Selection& selection = selections[{name, reported.requested, reported.selected}];
    if (selection.count++ == 0) selection = {name, reported.requested, reported.selected, reported.message, 1};
  }
  std::vector<Selection> all;
  for (auto& [key, selection] : selections) all.push_back(std::move(selection));
  return all;
}

std::vector<StageSum> stages_of(const Trace& trace) {
  std::map<std::tuple<std::string, std::string, std::string>, StageSum> stages;
  for (const RecordedEvent& event : trace.events) {
    if (!is(event, runtime::events::kStageFinished)) continue;
    const OperationContext& work = event.event.context;
    StageSum& stage = stages[{work.operation, work.stage, event.event.selected}];
    stage = {work.operation, work.stage, event.event.selected, stage.runs + 1, stage.ms + event.event.ms};
  }
  std::vector<StageSum> all;
  for (auto& [key, stage] : stages) all.push_back(std::move(stage));
  std::stable_sort(all.begin(), all.end(), [](const StageSum& a, const StageSum& b) { return a.ms > b.ms; });
  return all;
}

void count_runs(const View& view, Report& report) {
  for (const Run& run : view.runs) {
    count_run(run, report.counts);
    report.rows = std::max(report.rows, run.rows);
    for (const RecordedEvent* event : run.events) {
      if (is_launch(*event)) ++(event->event.cpu_device ? report.launches_on_cpu_device : report.launches_on_gpu);
      if (is_copy_in(*event)) report.bytes_in += event->event.bytes;
      if (is_copy_out(*event)) report.bytes_out += event->event.bytes;
      const bool waited = is(*event, Event::Kind::Synchronized) && event->event.context.purpose == Purpose::Trace;
      report.stages_synchronized = report.stages_synchronized || waited;
    }
  }
}

Report::StayedOnDevice stayed(const Report& report) {
  const bool left = std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
    return finding.rule->step == Check::StayedOnDevice && finding.rule->severity >= Severity::High;
  });
  if (left) return Report::StayedOnDevice::No;
  if (report.launches_on_gpu + report.launches_on_cpu_device == 0) return Report::StayedOnDevice::NotApplicable;
  return report.unclear_reads() == 0 ? Report::StayedOnDevice::Yes : Report::StayedOnDevice::Unclear;
}

// Returns the first structural finding, otherwise the first finding. Ignores findings of low severity, which do not
// make a path slow.
const Finding* principal(const Report& report) {
  const Finding* first = nullptr;
  for (const Finding& finding : report.findings) {
    if (finding.rule->severity == Severity::Low) continue;
    if (finding.structural) return &finding;
    if (first == nullptr) first = &finding;
  }
  return first;
}

std::vector<Target> targets_of(const std::vector<Finding>& findings) {
  std::vector<Target> targets;
  for (const Finding& finding : findings) {
    const bool known = std::any_of(targets.begin(), targets.end(), [&](const Target& target) {
      return target.rule == finding.rule && target.operation == finding.operation;
    });
    if (!known) targets.push_back({finding.rule, finding.operation, finding.stage});
    if (targets.size() == kMaxTargets) break;
  }
  return targets;
}

void answer_without_findings(Report& report) {
  if (report.lacks_evidence()) {
    const auto first = std::find_if(report.missing.begin(), report.missing.end(),
                                    [](const MissingEvidence& missing) { return missing.decisive; });
    report.cause = "Unknown: " + first->what + '.';
    report.change = "Unknown; first " + first->action + '.';
  } else if (report.launches_on_gpu + report.launches_on_cpu_device == 0) {
    const std::string reason = report.selections.empty() ? "" : report.selections.front().reason;
    report.cause = "It is CPU code: no run used a device" + (reason.empty() ? "." : ": " + reason + '.');
    report.change = "None if that is intended; KILN_EXECUTION_MODE=gpu runs it on a device or reports what is missing.";
  } else {
    report.cause = "No finding.";
    report.change = "None.";
  }
}

}  // namespace

void count_run(const Run& run, DispatchCounts& counts) {
  if (run.implicit) {
    if (run.launches > 0) ++counts.undeclared;
    return;
  }
  ++counts.total;
  switch (place_of(run)) {
    case Place::Processor: ++counts.on_processor; break;
    case Place::CpuDevice: ++counts.on_cpu_device; break;
    case Place::Gpu: ++counts.on_device; break;
  }
  if (run.fell_back) ++counts.fallbacks;
}

// A run that did not end within the trace counts as a device run only if it launched a kernel.
Place place_of(const Run& run) {
  const bool on_device = run.dispatched != nullptr ? is_device(run.dispatched->event.selected) : run.launches > 0;
  if (!on_device) return Place::Processor;
  const bool is_cpu = (run.dispatched != nullptr && run.dispatched->event.cpu_device) ||
                      (run.decided != nullptr && run.decided->event.cpu_device) ||
                      std::any_of(run.events.begin(), run.events.end(), [](const RecordedEvent* event) {
                        return is_launch(*event) && event->event.cpu_device;
                      });
  return is_cpu ? Place::CpuDevice : Place::Gpu;
}

void fill_report(const View& view, Report& report) {
  report.command = view.trace.command;
  report.date = view.trace.date;
  report.devices = devices_of(view.trace);
  report.selections = selections_of(view.trace);
  report.format = view.trace.format;
  report.stages = stages_of(view.trace);
  report.longest.assign(report.stages.begin(), report.stages.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                           report.stages.size(), kMaxLongestStages)));
  report.targets = targets_of(report.findings);
  count_runs(view, report);
  report.stayed = stayed(report);
}

void summarize_cause(Report& report) {
  const Finding* finding = principal(report);
  if (finding == nullptr) {
    answer_without_findings(report);
    return;
  }
  const std::string who = finding->operation.empty() ? "It" : finding->operation;
  report.cause =
      who + (finding->structural ? ": " : ", incidentally: ") + finding->rule->cause + " (" + finding->text + ").";
  report.change = finding->structural ? std::string(finding->rule->advice) + '.'
                                      : "No structural change; " + std::string(finding->rule->advice) + '.';
  report.change.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(report.change.front())));
}

}  // namespace kiln::audit
