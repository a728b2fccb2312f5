// What an audit says besides its findings: facts of the run, and two answers in words.
#include <algorithm>
#include <cctype>
#include <tuple>

#include "runtime/audit_view.hpp"

namespace kiln::audit {
namespace {

constexpr std::size_t kLongestStages = 3;

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// A decision names the device; a launch at least what it was compiled for.
std::vector<std::string> devices_of(const Trace& trace) {
  std::vector<std::string> decided;
  std::vector<std::string> launched;
  for (const RecordedEvent& event : trace.events) {
    if (is(event, Event::Kind::Decided) && is_device(event.event.selected)) add_name(decided, event.event.target);
    if (is_launch(event)) add_name(launched, event.event.target);
  }
  return decided.empty() ? launched : decided;
}

std::vector<Selection> selections_of(const Trace& trace) {
  std::map<std::tuple<std::string, std::string, std::string>, Selection> selections;
  for (const RecordedEvent& event : trace.events) {
    if (!is(event, Event::Kind::Decided)) continue;
    const Event& told = event.event;
    const std::string& name = told.work.operation.empty() ? told.unit : told.work.operation;
    Selection& selection = selections[{name, told.requested, told.selected}];
    if (selection.times++ == 0) selection = {name, told.requested, told.selected, told.message, 1};
  }
  std::vector<Selection> all;
  for (auto& [key, selection] : selections) all.push_back(std::move(selection));
  return all;
}

std::vector<StageSum> longest_of(const Trace& trace) {
  std::map<std::tuple<std::string, std::string, std::string>, StageSum> stages;
  for (const RecordedEvent& event : trace.events) {
    if (!is(event, Event::Kind::StageRan)) continue;
    const Work& work = event.event.work;
    StageSum& stage = stages[{work.operation, work.stage, event.event.selected}];
    stage = {work.operation, work.stage, event.event.selected, stage.runs + 1, stage.ms + event.event.ms};
  }
  std::vector<StageSum> all;
  for (auto& [key, stage] : stages) all.push_back(std::move(stage));
  std::stable_sort(all.begin(), all.end(), [](const StageSum& a, const StageSum& b) { return a.ms > b.ms; });
  if (all.size() > kLongestStages) all.resize(kLongestStages);
  return all;
}

// A run that did not end within the trace claims a device only by its launches.
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
      const bool waited = is(*event, Event::Kind::Synchronised) && event->event.work.purpose == Purpose::Trace;
      report.stages_waited = report.stages_waited || waited;
    }
  }
}

Report::Stayed stayed(const Report& report) {
  const bool left = std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
    return finding.rule->step == Step::StayedThere && finding.rule->severity >= Severity::High;
  });
  if (left) return Report::Stayed::No;
  return report.counts.on_device == 0 ? Report::Stayed::NothingThere : Report::Stayed::Yes;
}

// The first that is structural; without one the first of all. Clean-ups make no path slow.
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
  if (counts.total == 0) {
    report.cause = "The trace has no operation in it, so nothing can be said.";
    report.change = "Run the work inside a Dispatch, so that the trace says which operation did what.";
  } else if (counts.on_device == 0) {
    const std::string reason = report.selections.empty() ? "" : report.selections.front().reason;
    report.cause = "It is CPU code: no run was on a device" + (reason.empty() ? "." : ": " + reason + '.');
    report.change = "None where that is right; KILN_EXECUTION_MODE=gpu runs it on a device or says what is missing.";
  } else {
    report.cause = "Nothing that was found.";
    report.change = "None is needed.";
  }
}

}  // namespace

void count_run(const Run& run, DispatchCounts& counts) {
  ++counts.total;
  ++(on_device(run) ? counts.on_device : counts.on_processor);
  if (run.fell_back) ++counts.fallbacks;
}

void describe(const View& view, Report& report) {
  report.command = view.trace.command;
  report.date = view.trace.date;
  report.devices = devices_of(view.trace);
  report.selections = selections_of(view.trace);
  report.longest = longest_of(view.trace);
  count_runs(view, report);
  report.stayed = stayed(report);
}

void answer(Report& report) {
  const Finding* finding = principal(report);
  if (finding == nullptr) {
    answer_without_findings(report);
    return;
  }
  const std::string who = finding->operation.empty() ? "It" : finding->operation;
  report.cause = who + (finding->structural ? ": " : ", in some runs or at first: ") + finding->rule->cause + " (" +
                 finding->text + ").";
  report.change = finding->structural ? std::string(finding->rule->advice) + '.'
                                      : "None of the structure; " + std::string(finding->rule->advice) + '.';
  report.change.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(report.change.front())));
}

}  // namespace kiln::audit
