// SPDX-License-Identifier: Apache-2.0
// Audit rules: host waits between launches, and batches that the host drives.
#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

/// A wait between two launches on one stream, of one run or one workflow, with no read after it.
constexpr Rule kSyncBetween{"sync_between_launches",
                            Check::NoSynchronization,
                            Severity::High,
                            true,
                            "the host waits for a stream between launches that are already ordered, and reads nothing",
                            "remove the wait: launches on one stream run in order"};
/// A wait for the default stream in a run whose launches are all on others.
constexpr Rule kNullStream{"null_stream_sync",
                           Check::NoSynchronization,
                           Severity::High,
                           true,
                           "a wrapper waits for the default stream while its work is on another stream",
                           "wait for the caller's stream, or do not wait: the default stream waits for all others"};
/// 16 waits or more in a run, each after one launch of at most 8 blocks, and with a read after it.
constexpr Rule kSyncPerItem{"sync_per_item",
                            Check::NoSynchronization,
                            Severity::High,
                            true,
                            "the host waits after each small launch, so that the device has one item at a time",
                            "wait once for the whole batch, and read its results together"};
/// 16 launches or more of one kernel in a run, with at most 8 blocks each.
constexpr Rule kTinyLaunches{
    "many_tiny_launches",
    Check::NoHostBatching,
    Severity::High,
    true,
    "the host launches a kernel for each group, and each launch is too small to fill the device",
    "launch once over all groups, with the group offsets in device memory"};
/// A pool returned memory twice or more in a run, with launches in between.
constexpr Rule kTrimLoop{"trim_in_loop",
                         Check::NoHostBatching,
                         Severity::High,
                         true,
                         "the pool releases its memory in a loop and allocates it again",
                         "trim once after the work, or set a limit for the pool"};
/// 8 allocations or more of like size (the same power of two), one between each two launches of one kernel.
constexpr Rule kAllocationLoop{"allocation_in_loop",
                               Check::NoHostBatching,
                               Severity::Medium,
                               true,
                               "device memory is allocated in each iteration of a loop",
                               "allocate once before the loop, with the size of the largest iteration"};

/// More than 8 launches of one kernel in a run, each after an upload of more than 16 bytes and at most 64 KiB, with
/// no read in between.
constexpr Rule kHostBins{"work_binned_by_host",
                         Check::NoHostBatching,
                         Severity::High,
                         true,
                         "the host sorts work into bins and launches a kernel for each, after an upload of its list",
                         "sort or partition on the device, and launch once over all bins with their offsets"};

constexpr std::uint64_t kList = 64 << 10;  // bytes; a larger upload is a chunk of the rows
constexpr std::size_t kMaxOfFixedSet = 8;  // launches of one kernel in a loop that are not a problem
constexpr std::size_t kManyLaunches = 16;  // of one kernel in one run …
constexpr std::uint64_t kFewBlocks = 8;    // … with no more blocks than this each

// A wait for an unknown stream proves nothing about the launches before it.
bool is_wait(const RecordedEvent& event) {
  return is(event, Event::Kind::Synchronized) && event.event.context.purpose != Purpose::Trace &&
         event.event.message != kUnknownStream;
}

// A wait between two launches of its stream.
struct Wait {
  const RecordedEvent* event;
  std::string_view before;  // kernel of the last launch
  std::string_view after;   // kernel of the next launch
  bool read;                // true if the host reads from the stream before the next launch
};

// Returns the waits that have launches before and after them on their stream.
std::vector<Wait> waits_of(const Events& events) {
  std::vector<Wait> waits;
  std::map<std::uint64_t, const RecordedEvent*> last;
  for (const RecordedEvent* event : events) {
    if (is_launch(*event)) last[event->event.stream] = event;
    const auto at = is_wait(*event) ? last.find(event->event.stream) : last.end();
    if (at != last.end()) waits.push_back({event, kernel_of(*at->second), {}, false});
  }
  struct Next {
    const RecordedEvent* launch = nullptr;
    bool read = false;
  };
  std::map<std::uint64_t, Next> next;
  auto wait = waits.rbegin();
  for (auto at = events.rbegin(); at != events.rend() && wait != waits.rend(); ++at) {
    const RecordedEvent& event = **at;
    Next& here = next[event.event.stream];
    if (is_launch(event)) here = {&event, false};
    if (is_copy_out(event) && event.event.context.purpose != Purpose::Trace) here.read = true;
    if (wait->event != &event) continue;
    if (here.launch != nullptr) wait->after = kernel_of(*here.launch);
    wait->read = here.read || here.launch == nullptr;
    ++wait;
  }
  return waits;
}

// Idle waits of runs without a number, by pattern: the operation and the kernels before and after.
using IdleWaits = std::map<std::tuple<const Run*, std::string_view, std::string_view>, Events>;

void add_idle(const Events& idle, Findings& to) {
  to.add(kSyncBetween, idle,
         format_count(idle.size(), "wait", "waits") + " between launches of one stream without a read after it");
}

// Returns the waits for the default stream if every launch is on another stream. In a run without a number, only those
// with a launch and no read after them: the others may end its work.
Events null_waits(const Events& events) {
  Events waits;
  bool elsewhere = false;
  bool read = true;
  for (auto at = events.rbegin(); at != events.rend(); ++at) {
    const RecordedEvent& event = **at;
    if (is_launch(event) && event.event.stream == 0) return {};
    elsewhere = elsewhere || is_launch(event);
    if (is_launch(event)) read = false;
    if (is_copy_out(event)) read = true;
    if (is_wait(event) && event.event.stream == 0 && !(read && is_unbounded(events))) waits.push_back(&event);
  }
  std::reverse(waits.begin(), waits.end());
  return elsewhere ? waits : Events();
}

void check_waits(const View& view, const Events& path, IdleWaits& patterns, Findings& to) {
  Events idle;
  for (const Wait& wait : waits_of(path)) {
    if (wait.read) continue;
    if (is_unbounded(path)) {
      patterns[{view.run_of(*wait.event), wait.before, wait.after}].push_back(wait.event);
    } else {
      idle.push_back(wait.event);
    }
  }
  if (!idle.empty()) add_idle(idle, to);
  if (const Events waits = null_waits(path); waits.size() >= (is_unbounded(path) ? kLoop : 1)) {
    to.add(kNullStream, waits,
           format_count(waits.size(), "wait", "waits") + " for the default stream; the launches are on another stream");
  }
}

// Finds waits that each follow one small launch and precede a read. The others are `sync_between_launches`.
void check_items(const Run& run, Findings& to) {
  Events waits;
  const RecordedEvent* pending = nullptr;  // a wait after one small launch
  std::size_t launches = 0;                // since the last wait
  bool small = true;
  for (const RecordedEvent* event : run.events) {
    if (is_launch(*event)) {
      pending = nullptr;
      ++launches;
      small = small && event->event.grid_blocks != 0 && event->event.grid_blocks <= kFewBlocks;
    } else if (is_wait(*event)) {
      pending = launches == 1 && small ? event : nullptr;
      launches = 0;
      small = true;
    } else if (is_copy_out(*event) && pending != nullptr) {
      waits.push_back(std::exchange(pending, nullptr));
    }
  }
  if (waits.size() < kManyLaunches) return;
  to.add(kSyncPerItem, waits, format_count(waits.size(), "wait", "waits") + ", each after one small launch");
}

void check_trims(const Events& path, Findings& to) {
  Events trims;
  bool launched = false;  // after a trim
  for (const RecordedEvent* event : path) {
    if (is(*event, runtime::events::kMemoryTrimmed) && (trims.empty() || launched)) {
      trims.push_back(event);
      launched = false;
    }
    launched = launched || is_launch(*event);
  }
  if (trims.size() < (is_unbounded(path) ? kLoop : 2)) return;
  to.add(kTrimLoop, trims, "the pool was trimmed " + std::to_string(trims.size()) + " times with launches in between");
}

// Moves the chains of many launches to `tiny` and forgets the others.
void keep_long(std::map<std::string, Events>& chains, std::map<std::string, Events>& tiny) {
  for (auto& [kernel, launches] : chains) {
    if (launches.size() < kManyLaunches) continue;
    Events& all = tiny[kernel];
    all.insert(all.end(), launches.begin(), launches.end());
  }
  chains.clear();
}

void check_tiny(const Run& run, Findings& to) {
  std::map<std::string, Events> tiny;
  std::map<std::string, Events> chain;  // in a run without a number: since the last large launch
  for (const RecordedEvent* event : run.events) {
    if (!is_launch(*event)) continue;
    if (event->event.grid_blocks != 0 && event->event.grid_blocks <= kFewBlocks) {
      chain[kernel_of(*event)].push_back(event);
    } else if (run.number == 0) {
      keep_long(chain, tiny);
    }
  }
  keep_long(chain, tiny);
  for (const auto& [kernel, launches] : tiny) {
    std::uint64_t maximum = 0;
    for (const RecordedEvent* launch : launches) maximum = std::max(maximum, launch->event.grid_blocks);
    to.add(kTinyLaunches, launches,
           std::to_string(launches.size()) + " launches of " + kernel + " in one run, of at most " +
               format_count(maximum, "block", "blocks") + " each",
           kernel);
  }
}

// Finds launches of one kernel that each follow an upload of a small list. A read by the host ends the sequence: what
// follows can be the next request of a program.
void check_bins(const Run& run, Findings& to) {
  std::map<std::string, Events> binned;
  const auto report = [&] {
    for (const auto& [kernel, launches] : binned) {
      if (launches.size() <= kMaxOfFixedSet) continue;
      to.add(kHostBins, launches,
             std::to_string(launches.size()) + " launches of " + kernel + ", each after an upload of at most " +
                 format_bytes(kList),
             kernel);
    }
    binned.clear();
  };
  bool uploaded = false;
  for (const RecordedEvent* event : run.events) {
    if (is_copy_out(*event)) report();
    if (is_copy_in(*event)) uploaded = event->event.bytes > kScalar && event->event.bytes <= kList;
    if (!is_launch(*event)) continue;
    if (uploaded) binned[kernel_of(*event)].push_back(event);
    uploaded = false;
  }
  report();
}

// Finds allocations between two launches of the same kernel, grouped by kernel and by size as a power of two.
void check_allocations(const Run& run, Findings& to) {
  std::map<std::string, std::map<int, Events>> between;
  std::map<std::string, std::size_t> since;  // position in `fresh` at the last launch of each kernel
  Events fresh;
  for (const RecordedEvent* event : run.events) {
    // Memory of a pool, of PyTorch or the driver, costs little.
    if (is_allocation(*event) && event->event.origin != "pool") fresh.push_back(event);
    if (!is_launch(*event)) continue;
    const auto [at, first] = since.try_emplace(kernel_of(*event), fresh.size());
    if (!first && at->second < fresh.size()) {
      const RecordedEvent* allocation = fresh[at->second];
      between[at->first][std::bit_width(allocation->event.bytes)].push_back(allocation);
    }
    at->second = fresh.size();
  }
  Events most;
  std::string kernel;
  for (const auto& [name, sizes] : between) {
    for (const auto& [size, allocations] : sizes) {
      // Several kernels of one loop see the same allocations; report only one.
      if (allocations.size() > most.size()) most = allocations, kernel = name;
    }
  }
  if (most.size() < kMaxOfFixedSet) return;
  const std::uint64_t bytes = most.front()->event.bytes;
  to.add(kAllocationLoop, most,
         format_count(most.size(), "allocation", "allocations") +
             (bytes == 0 ? " of unknown size" : " of about " + format_bytes(bytes)) +
             ", one between every two launches of " + kernel);
}

}  // namespace

void check_synchronization(const View& view, Findings& to) {
  IdleWaits patterns;
  for (const Events& path : view.paths) {
    check_waits(view, path, patterns, to);
    check_trims(path, to);
  }
  for (const auto& [pattern, idle] : patterns) {
    if (idle.size() >= kLoop) add_idle(idle, to);
  }
  for (const Run& run : view.runs) {
    check_items(run, to);
    check_tiny(run, to);
    check_bins(run, to);
    check_allocations(run, to);
  }
}

Rules synchronization_rules() {
  return {&kSyncBetween, &kNullStream, &kSyncPerItem, &kTinyLaunches, &kTrimLoop, &kAllocationLoop, &kHostBins};
}

}  // namespace kiln::audit
