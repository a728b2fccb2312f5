// The parts of an audit report other than the findings: facts about the run, the main cause and the suggested change.
#include <algorithm>
#include <cctype>
#include <tuple>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

constexpr std::size_t kMaxLongestStages = 3;

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// A decision names the device. A launch names at least the target for which the kernel was compiled.
std::vector<std::string> devices_of(const Trace& trace) {
  std::vector<std::string> decided;
  std::vector<std::string> launched;
  for (const RecordedEvent& event : trace.events) {
    if (is(event, runtime::events::kDecided) && is_device(event.event.selected)) add_name(decided, event.event.target);
    if (is_launch(event)) add_name(launched, event.event.target);
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

std::vector<StageSum> longest_of(const Trace& trace) {
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
  if (all.size() > kMaxLongestStages) all.resize(kMaxLongestStages);
  return all;
}

// A run that did not end within the trace counts as a device run only if it launched a kernel.
bool on_device(const Run& run) {
  return run.dispatched != nullptr ? is_device(run.dispatched->event.selected) : run.launches > 0;
}

void count_runs(const View& view, Report& report) {
  for (const Run& run : view.runs) {
    count_run(run, report.counts);
    report.rows = std::max(report.rows, run.rows);
    for (const RecordedEvent* event : run.events) {
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
  return report.counts.on_device + report.counts.undeclared == 0 ? Report::StayedOnDevice::NotApplicable
                                                                 : Report::StayedOnDevice::Yes;
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

void answer_without_findings(Report& report) {
  const DispatchCounts& counts = report.counts;
  if (counts.total == 0 && counts.undeclared == 0) {
    report.cause = "The trace contains no operation.";
    report.change = "Run the work inside a Dispatch, so that the trace records operations.";
  } else if (counts.on_device == 0 && counts.undeclared == 0) {
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
  ++(on_device(run) ? counts.on_device : counts.on_processor);
  if (run.fell_back) ++counts.fallbacks;
}

void fill_report(const View& view, Report& report) {
  report.command = view.trace.command;
  report.date = view.trace.date;
  report.devices = devices_of(view.trace);
  report.selections = selections_of(view.trace);
  report.longest = longest_of(view.trace);
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
