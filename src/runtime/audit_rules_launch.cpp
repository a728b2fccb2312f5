// Are launches and memory right for the hardware, and does the evidence show the real path.
#include <algorithm>
#include <map>

#include "runtime/audit_view.hpp"

namespace kiln::audit {
namespace {

constexpr Rule kOtherMemory{
    "memory_not_pooled",
    Step::LaunchesFit,
    Severity::Medium,
    false,
    "device memory does not come from the pool that was asked for",
    "see to what the reason says: the driver, or the limit; managed memory is for data larger than the device"};
constexpr Rule kSmallBlock{"small_fixed_block",
                           Step::LaunchesFit,
                           Severity::Low,
                           true,
                           "blocks are far smaller than the device would take",
                           "take the block from Kernel::occupancy, or say in the kernel why it is fixed "
                           "(reqd_work_group_size, __launch_bounds__)"};
constexpr Rule kHotCompile{"hot_compile",
                           Step::EvidenceIsReal,
                           Severity::Medium,
                           false,
                           "an operation waits for a compiler, so that its times are the compiler's",
                           "warm it: declare what the operation needs (Needs) and request it before, or ship a bundle"};
constexpr Rule kNotWhole{"evidence_not_whole",
                         Step::EvidenceIsReal,
                         Severity::Low,
                         false,
                         "the trace is full, and what came later is not in it",
                         "trace a shorter run; what is not in a trace cannot be audited"};
constexpr Rule kNameless{"launches_without_operation",
                         Step::EvidenceIsReal,
                         Severity::Low,
                         false,
                         "kernels are launched that belong to no operation",
                         "run them inside a Dispatch (or a WorkScope), so that the trace says what they are for"};

constexpr std::uint32_t kFarSmaller = 4;  // times

void check_blocks(const Run& run, Findings& to) {
  std::map<std::string, Events> launches;
  for (const RecordedEvent* event : run.events) {
    if (is_launch(*event) && event->event.advised != 0) launches[kernel_of(*event)].push_back(event);
  }
  for (const auto& [kernel, all] : launches) {
    const Event& first = all.front()->event;
    const bool fixed = std::all_of(all.begin(), all.end(), [&](const RecordedEvent* launch) {
      return launch->event.block == first.block && launch->event.block <= launch->event.advised / kFarSmaller;
    });
    // One that has not the threads for a block as advised could not do better.
    const bool enough = std::any_of(all.begin(), all.end(), [](const RecordedEvent* launch) {
      return launch->event.blocks > launch->event.advised / std::max(1U, launch->event.block);
    });
    if (!fixed || !enough) continue;
    to.add(kSmallBlock, all,
           kernel + " is always launched with " + counted(first.block, "thread", "threads") +
               " in a block; the driver would take " + std::to_string(first.advised),
           kernel);
  }
}

void check_memory(const View& view, Findings& to) {
  for (const RecordedEvent& event : view.trace.events) {
    if (!is(event, Event::Kind::MemorySet)) continue;
    const auto& [requested, selected] = std::pair(event.event.requested, event.event.selected);
    const bool pooled = requested.find("pool") != std::string::npos;
    if (!pooled || selected.empty() || selected == requested) continue;
    to.add(kOtherMemory, {&event},
           requested + " memory was asked for and " + selected + " is in force" +
               (event.event.message.empty() ? "" : ": " + event.event.message),
           selected);
  }
}

void check_compiles(const View& view, Findings& to) {
  for (const RecordedEvent& event : view.trace.events) {
    const bool compiled = is(event, Event::Kind::HotCompile) || is(event, Event::Kind::Compiled);
    if (!compiled || event.event.work.dispatch == 0) continue;
    to.add(kHotCompile, {&event}, "an operation waited for the compile of " + event.event.unit);
  }
}

void check_evidence(const View& view, Findings& to) {
  if (view.trace.dropped != 0) {
    to.add(kNotWhole, {}, counted(view.trace.dropped, "event is", "events are") + " missing at the end of the trace");
  }
  if (view.trace.not_understood != 0) {
    to.add(kNotWhole, {},
           counted(view.trace.not_understood, "event is", "events are") + " of a kind that this kiln does not know",
           "kinds");
  }
  Events nameless;
  for (const RecordedEvent& event : view.trace.events) {
    if (is_launch(event) && event.event.work.operation.empty()) nameless.push_back(&event);
  }
  if (nameless.empty()) return;
  to.add(kNameless, nameless, counted(nameless.size(), "launch belongs", "launches belong") + " to no operation");
}

}  // namespace

void check_launches(const View& view, Findings& to) {
  check_memory(view, to);
  for (const Run& run : view.runs) check_blocks(run, to);
  check_compiles(view, to);
  check_evidence(view, to);
}

}  // namespace kiln::audit
