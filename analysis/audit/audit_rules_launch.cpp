// SPDX-License-Identifier: Apache-2.0
// Audit rules: launches and memory that do not fit the hardware, and compiled code that is late or unused.
#include <algorithm>
#include <map>
#include <set>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

/// A pool was requested, and managed or plain memory is used.
constexpr Rule kOtherMemory{
    "memory_not_pooled",
    Check::LaunchShape,
    Severity::Medium,
    false,
    "device memory does not come from the requested pool",
    "fix the given reason (driver or limit); use managed memory only for data larger than the device"};
/// All launches of a kernel in a run have one block, a quarter of what the driver suggests or less, though there are
/// threads for more.
constexpr Rule kSmallBlock{"small_fixed_block",
                           Check::LaunchShape,
                           Severity::Low,
                           true,
                           "blocks are much smaller than the driver suggests",
                           "use the block size from Kernel::occupancy, or declare a fixed size in the kernel "
                           "(reqd_work_group_size, __launch_bounds__)"};
/// `shared_bytes` of all launches of a kernel in a run leave at most 512 threads resident on a multiprocessor of
/// 228 KiB (the largest there is), and the driver suggests twice the block or more for the same shared memory; not
/// on CPU devices.
constexpr Rule kSharedLimits{
    "shared_memory_limits_blocks",
    Check::LaunchShape,
    Severity::Low,
    true,
    "each block takes so much shared memory that few threads are resident, and the block is smaller than it could be",
    "use the block size from Kernel::occupancy with the shared memory of the launch, or use less shared memory"};
/// A caller waited for a compiler, in an operation or outside of one.
constexpr Rule kBlockingCompile{"blocking_compile",
                                Check::TraceComplete,
                                Severity::Medium,
                                false,
                                "the program waits for a compiler, so that its times include the compile",
                                "request the units before they are needed (Requirements), or ship a bundle"};
/// Three calls or more of a CCCL algorithm used the fallback after its compiled form was ready.
constexpr Rule kFallbackKept{
    "fallback_kept",
    Check::TraceComplete,
    Severity::Medium,
    true,
    "calls use the fallback although the compiled algorithm is ready",
    "ask for the compiled algorithm again on each call (it costs a lookup), or wait for it once"};
constexpr std::size_t kSteadyState = 3;   // calls after the algorithm was ready
constexpr std::uint32_t kFarSmaller = 4;  // factor
constexpr std::uint32_t kSmaller = 2;     // factor, if shared memory limits the blocks
// No device of CUDA has more shared memory per multiprocessor; with less, fewer blocks are resident.
constexpr std::uint64_t kSharedOfMultiprocessor = 228 << 10;
constexpr std::uint64_t kFewThreads = 512;  // resident on a multiprocessor, of 1024 to 2048

// Returns whether shared memory leaves few resident threads although the driver suggests a block of twice the size for
// the same shared memory.
bool shared_limits(const RecordedEvent& launch) {
  const Event& event = launch.event;
  if (event.shared_bytes == 0 || event.cpu_device) return false;
  const std::uint64_t blocks = kSharedOfMultiprocessor / event.shared_bytes;
  return blocks * event.block_threads <= kFewThreads && event.block_threads <= event.suggested_block_threads / kSmaller;
}

void check_blocks(const Run& run, Findings& to) {
  std::map<std::string, Events> launches;
  for (const RecordedEvent* event : run.events) {
    if (is_launch(*event) && event->event.suggested_block_threads != 0) launches[kernel_of(*event)].push_back(event);
  }
  for (const auto& [kernel, all] : launches) {
    const Event& first = all.front()->event;
    const bool fixed = std::all_of(all.begin(), all.end(), [&](const RecordedEvent* launch) {
      return launch->event.block_threads == first.block_threads &&
             launch->event.block_threads <= launch->event.suggested_block_threads / kFarSmaller;
    });
    // A launch with fewer threads than one suggested block cannot use a larger block.
    const bool enough = std::any_of(all.begin(), all.end(), [](const RecordedEvent* launch) {
      return launch->event.grid_blocks >
             launch->event.suggested_block_threads / std::max(1U, launch->event.block_threads);
    });
    if (enough && std::all_of(all.begin(), all.end(), [](const auto* launch) { return shared_limits(*launch); })) {
      to.add(kSharedLimits, all,
             kernel + " is launched with " + format_count(first.block_threads, "thread", "threads") + " and " +
                 format_bytes(first.shared_bytes) + " of shared memory per block; the driver suggests " +
                 std::to_string(first.suggested_block_threads) + " threads",
             kernel);
      continue;
    }
    if (!fixed || !enough) continue;
    to.add(kSmallBlock, all,
           kernel + " is always launched with " + format_count(first.block_threads, "thread", "threads") +
               " per block; the driver suggests " + std::to_string(first.suggested_block_threads),
           kernel);
  }
}

void check_memory(const View& view, Findings& to) {
  for (const RecordedEvent& event : view.trace.events) {
    if (!is(event, runtime::events::kMemoryTierSelected)) continue;
    const std::string& requested = event.event.requested;
    const std::string& selected = event.event.selected;
    const bool pooled = requested.find("pool") != std::string::npos;
    if (!pooled || selected.empty() || selected == requested) continue;
    to.add(kOtherMemory, {&event},
           requested + " memory was requested, " + selected + " is used" +
               (event.event.message.empty() ? "" : ": " + event.event.message),
           selected);
  }
}

void check_compiles(const View& view, Findings& to) {
  for (const RecordedEvent& event : view.trace.events) {
    // A compile without an operation ran on a background thread; nothing waited for it unless a wait says so.
    const bool in_run = is(event, Event::Kind::Compiled) && event.event.context.dispatch != 0;
    if (!in_run && !is(event, Event::Kind::BlockingCompile)) continue;
    const bool declared = !event.event.context.operation.empty();
    to.add(kBlockingCompile, {&event},
           (declared ? "an operation waited for the compile of " : "the program waited for the compile of ") +
               event.event.unit);
  }
}

bool makes_ready(const RecordedEvent& event) {
  return is(event, Event::Kind::Compiled) || is(event, Event::Kind::Loaded) || is(event, Event::Kind::Hit);
}

// Finds algorithms whose callers still use the fallback after the compiled form was ready.
void check_fallbacks(const View& view, Findings& to) {
  std::set<std::string> ready;
  std::map<std::string, Events> late;
  for (const RecordedEvent& event : view.trace.events) {
    const std::string& unit = event.event.unit;
    if (makes_ready(event)) ready.insert(unit);
    if (is(event, Event::Kind::CalledFallback) && ready.count(unit) != 0) late[unit].push_back(&event);
  }
  for (const auto& [unit, calls] : late) {
    if (calls.size() < kSteadyState) continue;
    to.add(kFallbackKept, calls,
           std::to_string(calls.size()) + " calls of " + unit + " used the fallback after it was ready", unit);
  }
}

}  // namespace

void check_launches(const View& view, Findings& to) {
  check_memory(view, to);
  for (const Run& run : view.runs) check_blocks(run, to);
  check_compiles(view, to);
  check_fallbacks(view, to);
}

Rules launch_rules() { return {&kOtherMemory, &kSmallBlock, &kSharedLimits, &kBlockingCompile, &kFallbackKept}; }

}  // namespace kiln::audit
