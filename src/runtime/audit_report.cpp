// What an audit says besides its findings: facts of the run, and two answers in words.
#include <algorithm>
#include <cctype>
#include <tuple>

#include "runtime/audit_view.hpp"

namespace kiln::runtime {
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

std::vector<Choice> choices_of(const Trace& trace) {
  std::map<std::tuple<std::string, std::string, std::string>, Choice> choices;
  for (const RecordedEvent& event : trace.events) {
    if (!is(event, Event::Kind::Decided)) continue;
    const Event& told = event.event;
    const std::string& name = told.work.operation.empty() ? told.unit : told.work.operation;
    Choice& choice = choices[{name, told.requested, told.selected}];
    if (choice.times++ == 0) choice = {name, told.requested, told.selected, told.message, 1};
  }
  std::vector<Choice> all;
  for (auto& [key, choice] : choices) all.push_back(std::move(choice));
  return all;
}

std::vector<StageTime> longest_of(const Trace& trace) {
  std::map<std::tuple<std::string, std::string, std::string>, StageTime> stages;
  for (const RecordedEvent& event : trace.events) {
    if (!is(event, Event::Kind::StageRan)) continue;
    const Work& work = event.event.work;
    StageTime& stage = stages[{work.operation, work.stage, event.event.selected}];
    stage = {work.operation, work.stage, event.event.selected, stage.runs + 1, stage.ms + event.event.ms};
  }
  std::vector<StageTime> all;
  for (auto& [key, stage] : stages) all.push_back(std::move(stage));
  std::stable_sort(all.begin(), all.end(), [](const StageTime& a, const StageTime& b) { return a.ms > b.ms; });
  if (all.size() > kLongestStages) all.resize(kLongestStages);
  return all;
}

// A run that did not end within the trace claims a device only by its launches.
bool on_device(const Run& run) {
  return run.dispatched != nullptr ? is_device(run.dispatched->event.selected) : run.launches > 0;
}

void count_runs(const View& view, Audit& audit) {
  for (const Run& run : view.runs) {
    count_run(run, audit.counts);
    audit.rows = std::max(audit.rows, run.rows);
    for (const RecordedEvent* event : run.events) {
      if (is_copy_in(*event)) audit.bytes_in += event->event.bytes;
      if (is_copy_out(*event)) audit.bytes_out += event->event.bytes;
      const bool waited = is(*event, Event::Kind::Synchronised) && event->event.work.purpose == Purpose::Trace;
      audit.stages_waited = audit.stages_waited || waited;
    }
  }
}

Audit::Stayed stayed(const Audit& audit) {
  const bool left = std::any_of(audit.findings.begin(), audit.findings.end(), [](const Finding& finding) {
    return finding.rule->step == Step::StayedThere && finding.rule->severity >= Severity::High;
  });
  if (left) return Audit::Stayed::No;
  return audit.counts.on_device == 0 ? Audit::Stayed::NothingThere : Audit::Stayed::Yes;
}

// The first that is structural; without one the first of all. Clean-ups make no path slow.
const Finding* principal(const Audit& audit) {
  const Finding* first = nullptr;
  for (const Finding& finding : audit.findings) {
    if (finding.rule->severity == Severity::Low) continue;
    if (finding.structural) return &finding;
    if (first == nullptr) first = &finding;
  }
  return first;
}

void answer_without_findings(Audit& audit) {
  const DispatchCounts& counts = audit.counts;
  if (counts.total == 0) {
    audit.cause = "The trace has no operation in it, so nothing can be said.";
    audit.change = "Run the work inside a Dispatch, so that the trace says which operation did what.";
  } else if (counts.on_device == 0) {
    const std::string reason = audit.choices.empty() ? "" : audit.choices.front().reason;
    audit.cause = "It is CPU code: no run was on a device" + (reason.empty() ? "." : ": " + reason + '.');
    audit.change = "None where that is right; KILN_EXECUTION_MODE=gpu runs it on a device or says what is missing.";
  } else {
    audit.cause = "Nothing that was found.";
    audit.change = "None is needed.";
  }
}

}  // namespace

void count_run(const Run& run, DispatchCounts& counts) {
  ++counts.total;
  ++(on_device(run) ? counts.on_device : counts.on_processor);
  if (run.fell_back) ++counts.fallbacks;
}

void describe(const View& view, Audit& audit) {
  audit.command = view.trace.command;
  audit.date = view.trace.date;
  audit.devices = devices_of(view.trace);
  audit.choices = choices_of(view.trace);
  audit.longest = longest_of(view.trace);
  count_runs(view, audit);
  audit.stayed = stayed(audit);
}

void answer(Audit& audit) {
  const Finding* finding = principal(audit);
  if (finding == nullptr) {
    answer_without_findings(audit);
    return;
  }
  const std::string who = finding->operation.empty() ? "It" : finding->operation;
  audit.cause = who + (finding->structural ? ": " : ", in some runs or at first: ") + finding->rule->cause + " (" +
                finding->text + ").";
  audit.change = finding->structural ? std::string(finding->rule->advice) + '.'
                                     : "None of the structure; " + std::string(finding->rule->advice) + '.';
  audit.change.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(audit.change.front())));
}

}  // namespace kiln::runtime
