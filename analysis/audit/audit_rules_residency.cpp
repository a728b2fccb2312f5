// SPDX-License-Identifier: Apache-2.0
// Audit rules: whether the path ran on the device and its data stayed there.
#include <set>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

/// `gpu` was requested and the CPU was chosen.
constexpr Rule kNotSelected{
    "requested_not_selected",
    Check::RanOnDevice,
    Severity::Blocking,
    true,
    "a device was requested but the CPU was selected",
    "return an error if gpu is requested without a device (as kiln::runtime does), and fix what is missing"};
/// A device was chosen, the run (of one row or more) launched nothing, and no `fell_back` has the reason.
constexpr Rule kSilent{"silent_fallback",
                       Check::RanOnDevice,
                       Severity::Blocking,
                       true,
                       "a device was selected but no kernel was launched, and no fallback was reported",
                       "launch the variant of the device, or report the fallback and its reason (Dispatch::fall_back)"};
/// A decision was taken inside a run, or twice for one workflow.
constexpr Rule kRepeatedDecision{
    "repeated_decision",
    Check::RanOnDevice,
    Severity::Medium,
    true,
    "the backend is decided again during an operation or workflow",
    "decide once at the beginning (Workflow::begin), and again only between chunks (Workflow::next_chunk)"};
/// The rows were on a device and the run on the CPU.
constexpr Rule kDemoted{"input_demoted",
                        Check::StayedOnDevice,
                        Severity::Blocking,
                        true,
                        "rows on a device were computed on the CPU",
                        "add a variant for that device; to compute on the host, materialize the rows explicitly first"};

Events known(std::initializer_list<const RecordedEvent*> events) {
  Events there;
  for (const RecordedEvent* event : events) {
    if (event != nullptr) there.push_back(event);
  }
  return there;
}

void check_run(const Run& run, Findings& to) {
  const std::string chosen = run.chosen();
  // The evidence starts with the events of the run itself, which name it.
  const Events evidence = known({run.dispatched, run.decided});
  if (run.residency == Residency::Device && !chosen.empty() && !is_device(chosen)) {
    to.add(kDemoted, evidence,
           format_count(run.rows, "row was", "rows were") + " on a device, but the operation ran on the CPU");
  }
  if (is_device(chosen) && run.dispatched != nullptr && !is_device(run.selected()) && run.launches == 0 &&
      run.rows != 0 && !run.fell_back) {
    to.add(kSilent, evidence, chosen + " was selected, but nothing was launched and no fell_back event gives a reason");
  }
}

// Finds decisions inside a run on the same thread. A decision that is the first event of a run belongs to that run.
void check_decisions(const View& view, Findings& to) {
  std::set<std::uint64_t> first;
  std::set<std::uint64_t> last;
  std::set<std::uint64_t> own;
  for (const Run& run : view.runs) {
    if (run.number == 0) continue;
    first.insert(run.events.front()->id);
    last.insert(run.events.back()->id);
    if (run.decided != nullptr) own.insert(run.decided->id);
  }
  std::map<std::uint64_t, const RecordedEvent*> of_workflow;
  std::map<std::uint64_t, std::uint64_t> open;  // open runs by thread
  for (const RecordedEvent& event : view.trace.events) {
    const OperationContext& work = event.event.context;
    std::uint64_t& here = open[event.thread];
    if (is(event, runtime::events::kDecided)) {
      const RecordedEvent*& before = of_workflow[work.workflow];
      const bool again = work.workflow != 0 && before != nullptr;
      if (here > 0 && own.count(event.id) == 0) {
        to.add(kRepeatedDecision, {&event}, "a decision was made while an operation was running");
      } else if (again) {
        to.add(kRepeatedDecision, {&event}, "one workflow was decided twice without a new chunk");
      }
      before = &event;
    }
    here += first.count(event.id);
    if (last.count(event.id) != 0 && here > 0) --here;
  }
}

}  // namespace

void check_residency(const View& view, Findings& to) {
  for (const RecordedEvent& event : view.trace.events) {
    if (!is(event, runtime::events::kDecided) || event.event.requested != "gpu") continue;
    if (event.event.selected.empty() || is_device(event.event.selected)) continue;
    to.add(kNotSelected, {&event},
           "gpu was requested but " + event.event.selected +
               " was selected: " + (event.event.message.empty() ? "no reason given" : event.event.message));
  }
  for (const Run& run : view.runs) check_run(run, to);
  check_round_trips(view, to);
  check_decisions(view, to);
}

Rules residency_rules() {
  Rules rules = {&kNotSelected, &kSilent, &kRepeatedDecision, &kDemoted};
  for (const Rule* rule : round_trip_rules()) rules.push_back(rule);
  return rules;
}

}  // namespace kiln::audit
