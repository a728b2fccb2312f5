// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/audit_view.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

namespace kiln::audit {
namespace {

constexpr std::size_t kMaxEvidence = 8;  // maximum number of ids in a finding

// Counts the launches of each run, including those of operations that it calls: all launches on its thread between its
// first and last event.
void count_launches(const Trace& trace, std::vector<Run>& runs) {
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> launches;  // ids, by thread
  for (const RecordedEvent& event : trace.events) {
    if (is_launch(event)) launches[event.thread].push_back(event.id);
  }
  for (Run& run : runs) {
    if (run.number == 0) {
      run.launches = static_cast<std::uint64_t>(std::count_if(
          run.events.begin(), run.events.end(), [](const RecordedEvent* event) { return is_launch(*event); }));
      continue;
    }
    const std::vector<std::uint64_t>& ids = launches[run.events.front()->thread];
    const auto first = std::lower_bound(ids.begin(), ids.end(), run.events.front()->id);
    run.launches = static_cast<std::uint64_t>(std::upper_bound(first, ids.end(), run.events.back()->id) - first);
  }
}

void note(Run& run, const RecordedEvent& event) {
  const OperationContext& work = event.event.context;
  // A decision inside a run belongs to another operation, unless it is the first event of the run.
  const bool own = !is(event, runtime::events::kDecided) || run.events.empty();
  run.events.push_back(&event);
  if (!own) return;
  run.number = work.dispatch;
  run.rows = std::max(run.rows, work.rows);
  if (run.workflow == 0) run.workflow = work.workflow;
  if (run.operation.empty()) run.operation = work.operation;
  if (run.residency == Residency::Unknown) run.residency = work.residency;
  if (is(event, runtime::events::kDispatched)) run.dispatched = &event;
}

using Decisions = std::unordered_map<std::uint64_t, const RecordedEvent*>;  // by id

// A fallback is reported by the run itself or by its decision, for one operation or for a whole workflow.
void note_fallbacks(const Events& fallbacks, const Decisions& decisions, std::vector<Run>& runs) {
  std::set<std::uint64_t> by_run;
  std::set<std::pair<std::uint64_t, std::string>> by_decision;  // the operation; empty for all operations
  std::unordered_map<std::uint64_t, const Run*> numbered;
  for (const Run& run : runs) {
    if (run.number != 0) numbered[run.number] = &run;
  }
  for (const RecordedEvent* event : fallbacks) {
    const OperationContext& work = event->event.context;
    const auto run = numbered.find(work.dispatch);
    const auto decided = decisions.find(work.workflow);
    if (run != numbered.end() && run->second->operation == work.operation) {
      by_run.insert(work.dispatch);
    } else if (work.workflow != 0) {
      const bool of_all = decided != decisions.end() && decided->second->event.context.operation == work.operation;
      by_decision.insert({work.workflow, of_all ? std::string() : work.operation});
    }
  }
  for (Run& run : runs) {
    if (run.number == 0) continue;
    run.fell_back = by_run.count(run.number) != 0 || by_decision.count({run.workflow, run.operation}) != 0 ||
                    by_decision.count({run.workflow, {}}) != 0;
  }
}

std::vector<Events> paths_of(const Trace& trace) {
  std::vector<Events> paths;
  // A run without a workflow is its own group. The key has a flag because ids of runs and of decisions can be equal.
  std::map<std::pair<std::uint64_t, std::pair<bool, std::uint64_t>>, std::size_t> place;
  for (const RecordedEvent& event : trace.events) {
    const OperationContext& work = event.event.context;
    const bool flows = work.workflow != 0;
    if (work.dispatch == 0 && !(flows && is_work(event))) continue;
    const auto [at, fresh] =
        place.try_emplace({event.thread, {flows, flows ? work.workflow : work.dispatch}}, paths.size());
    if (fresh) paths.emplace_back();
    paths[at->second].push_back(&event);
  }
  return paths;
}

// Adds the events of runs without a number and without a workflow, which is not in `paths_of`.
void add_unnumbered_paths(const std::vector<Run>& runs, std::vector<Events>& paths) {
  for (const Run& run : runs) {
    if (run.number != 0 || run.workflow != 0) continue;
    std::size_t begin = 0;
    for (std::size_t piece = 0; piece <= run.breaks.size(); ++piece) {
      const std::size_t end = piece < run.breaks.size() ? run.breaks[piece] : run.events.size();
      paths.emplace_back(run.events.begin() + static_cast<std::ptrdiff_t>(begin),
                         run.events.begin() + static_cast<std::ptrdiff_t>(end));
      begin = end;
    }
  }
}

}  // namespace

bool is_device(std::string_view selected) { return !selected.empty() && selected != "cpu" && selected != "host"; }

// A launch or call that was rejected has the error after the name of the kernel or algorithm.
bool is_launch(const RecordedEvent& event) {
  const bool launched = is(event, Event::Kind::Launched) || is(event, Event::Kind::CalledCompiled);
  return launched && event.event.message.find(": ") == std::string::npos;
}
bool is_allocation(const RecordedEvent& event) {
  return is(event, Event::Kind::Allocated) && event.event.message != "released";
}
bool is_copy_in(const RecordedEvent& event) {
  return is(event, Event::Kind::Copied) && event.event.message == "to the device";
}
bool is_copy_out(const RecordedEvent& event) {
  return is(event, Event::Kind::Copied) && event.event.message == "from the device";
}

bool is_work(const RecordedEvent& event) {
  switch (event.event.kind) {
    case Event::Kind::Launched:
    case Event::Kind::CalledCompiled:
    case Event::Kind::Copied:
    case Event::Kind::Synchronized:
    case Event::Kind::Allocated: return true;
    default: return is(event, runtime::events::kMemoryTrimmed);
  }
}

std::string Run::selected() const {
  if (dispatched != nullptr && !dispatched->event.selected.empty()) return dispatched->event.selected;
  return decided != nullptr ? decided->event.selected : std::string();
}

std::string Run::chosen() const {
  if (dispatched != nullptr && !dispatched->event.origin.empty()) return dispatched->event.origin;
  return decided != nullptr ? decided->event.selected : selected();
}

View::View(const Trace& of) : trace(of), run_index_(of.events.size(), kNoRun) {
  std::unordered_map<std::uint64_t, std::size_t> place;  // index of each run, by id
  Decisions decisions;
  Events fallbacks;
  for (const RecordedEvent& event : trace.events) {
    const OperationContext& work = event.event.context;
    if (work.workflow != 0 && is(event, runtime::events::kDecided)) decisions.try_emplace(work.workflow, &event);
    if (is(event, runtime::events::kFellBack)) fallbacks.push_back(&event);
    if (work.dispatch == 0) continue;
    const auto [at, fresh] = place.try_emplace(work.dispatch, runs.size());
    if (fresh) runs.emplace_back();
    note(runs[at->second], event);
    run_index_[static_cast<std::size_t>(&event - trace.events.data())] = static_cast<std::uint32_t>(at->second);
  }
  add_unnumbered_runs(trace, runs, run_index_);
  for (Run& run : runs) {
    ++runs_of[run.operation];
    if (run.number == 0) continue;
    if (const auto at = decisions.find(run.workflow); at != decisions.end()) run.decided = at->second;
  }
  note_fallbacks(fallbacks, decisions, runs);
  count_launches(trace, runs);
  paths = paths_of(trace);
  add_unnumbered_paths(runs, paths);
}

const Run* View::run_of(const RecordedEvent& event) const {
  const std::uint32_t index = run_index_[static_cast<std::size_t>(&event - trace.events.data())];
  return index == kNoRun ? nullptr : &runs[index];
}

const std::string& View::operation_of(const RecordedEvent& event) const {
  const Run* run = run_of(event);
  return run != nullptr && run->number == 0 ? run->operation : event.event.context.operation;
}

void Findings::add_fence(const RecordedEvent& read) {
  ReadUse& use = use_of(read);
  if (use == ReadUse::Terminal) use = ReadUse::AllocationFence;
}

void Findings::add_unclear(const Events& events) {
  for (const RecordedEvent* event : events) {
    if (is_copy_out(*event) && use_of(*event) == ReadUse::Terminal) use_of(*event) = ReadUse::Unclear;
  }
}

std::vector<HostReads> Findings::reads() const {
  std::map<std::tuple<ReadUse, std::string_view, std::string_view>, HostReads> groups;
  for (const RecordedEvent& event : view_.trace.events) {
    if (!is_copy_out(event)) continue;
    const OperationContext& work = event.event.context;
    const ReadUse found = uses_[static_cast<std::size_t>(&event - view_.trace.events.data())];
    const ReadUse use = work.purpose == Purpose::Trace ? ReadUse::Tracing : found;
    const std::string& operation = view_.operation_of(event);
    HostReads& group = groups[{use, operation, work.stage}];
    if (group.count == 0) group = {use, operation, work.stage, 0, 0, event.id};
    ++group.count;
    group.bytes += event.event.bytes;
  }
  std::vector<HostReads> all;
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

void Findings::add(const Rule& rule, const Events& evidence, std::string text, std::string subject) {
  const OperationContext work = evidence.empty() ? OperationContext{} : evidence.front()->event.context;
  const std::string operation = evidence.empty() ? std::string() : view_.operation_of(*evidence.front());
  const auto [at, fresh] = place_.try_emplace({&rule, operation, subject}, findings_.size());
  if (fresh) findings_.emplace_back();
  Finding& finding = findings_[at->second];
  if (fresh) {
    finding.rule = &rule;
    finding.operation = operation;
    finding.stage = work.stage;
    finding.subject = std::move(subject);
    finding.text = std::move(text);
    finding.first_ms = evidence.empty() ? 0 : evidence.front()->start_ms;
  }
  std::vector<std::uint64_t>& runs = finding.dispatches;
  if (work.dispatch != 0 && (runs.empty() || runs.back() != work.dispatch)) runs.push_back(work.dispatch);
  for (const RecordedEvent* event : evidence) {
    if (finding.events.size() < kMaxEvidence) finding.events.push_back(event->id);
    if (is_copy_out(*event) && rule.step == Check::StayedOnDevice && rule.severity > Severity::Low) {
      use_of(*event) = ReadUse::Defect;
    }
    finding.bytes += event->event.bytes;
    finding.ms += event->event.ms;
  }
  finding.count += evidence.size();
}

std::vector<Finding> Findings::take() {
  for (Finding& finding : findings_) {
    std::vector<std::uint64_t>& runs = finding.dispatches;
    std::sort(runs.begin(), runs.end());
    runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
    const auto all = view_.runs_of.find(finding.operation);
    const bool everywhere = runs.empty() || all == view_.runs_of.end() || runs.size() >= all->second;
    finding.structural = finding.rule->structural && everywhere;
  }
  std::stable_sort(findings_.begin(), findings_.end(), [](const Finding& a, const Finding& b) {
    if (a.rule->step != b.rule->step) return a.rule->step < b.rule->step;
    if (a.rule->severity != b.rule->severity) return a.rule->severity > b.rule->severity;
    return a.ms > b.ms;
  });
  return std::move(findings_);
}

}  // namespace kiln::audit
