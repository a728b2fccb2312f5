// Audit rules: host waits between launches, and batches that the host drives.
#include <algorithm>
#include <bit>
#include <map>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

constexpr Rule kSyncBetween{"sync_between_launches",
                            Check::NoSynchronization,
                            Severity::High,
                            true,
                            "the host waits for a stream between launches that are already ordered, and reads nothing",
                            "remove the wait: launches on one stream run in order"};
constexpr Rule kNullStream{"null_stream_sync",
                           Check::NoSynchronization,
                           Severity::High,
                           true,
                           "a wrapper waits for the default stream while its work is on another stream",
                           "wait for the caller's stream, or do not wait: the default stream waits for all others"};
constexpr Rule kTinyLaunches{
    "many_tiny_launches",
    Check::NoHostBatching,
    Severity::High,
    true,
    "the host launches a kernel for each group, and each launch is too small to fill the device",
    "launch once over all groups, with the group offsets in device memory"};
constexpr Rule kTrimLoop{"trim_in_loop",
                         Check::NoHostBatching,
                         Severity::High,
                         true,
                         "the pool releases its memory in a loop and allocates it again",
                         "trim once after the work, or set a limit for the pool"};
constexpr Rule kAllocationLoop{"allocation_in_loop",
                               Check::NoHostBatching,
                               Severity::Medium,
                               true,
                               "device memory is allocated in each iteration of a loop",
                               "allocate once before the loop, with the size of the largest iteration"};

constexpr Rule kHostBins{"work_binned_by_host",
                         Check::NoHostBatching,
                         Severity::High,
                         true,
                         "the host sorts work into bins and launches a kernel for each, after an upload of its list",
                         "sort or partition on the device, and launch once over all bins with their offsets"};

constexpr std::uint64_t kScalar = 16;      // bytes; up to this size an upload is a parameter
constexpr std::uint64_t kList = 64 << 10;  // bytes; a larger upload is a chunk of the rows
constexpr std::size_t kMaxOfFixedSet = 8;  // launches of one kernel in a loop that are not a problem
constexpr std::size_t kManyLaunches = 16;  // of one kernel in one run …
constexpr std::uint64_t kFewBlocks = 8;    // … with no more blocks than this each

bool is_wait(const RecordedEvent& event) {
  return is(event, Event::Kind::Synchronized) && event.event.context.purpose != Purpose::Trace;
}

// Returns the waits between two launches of their stream without a read before the second launch.
Events idle_waits(const Events& events) {
  enum class Next : unsigned char { Nothing, Launch, Read };
  std::map<std::uint64_t, const RecordedEvent*> first;  // first launch of each stream
  for (const RecordedEvent* event : events) {
    if (is_launch(*event)) first.try_emplace(event->event.stream, event);
  }
  Events idle;
  std::map<std::uint64_t, Next> next;
  for (auto at = events.rbegin(); at != events.rend(); ++at) {
    const RecordedEvent& event = **at;
    Next& here = next[event.event.stream];
    if (is_launch(event)) here = Next::Launch;
    if (is_copy_out(event) && event.event.context.purpose != Purpose::Trace) here = Next::Read;
    const auto before = first.find(event.event.stream);
    if (is_wait(event) && here == Next::Launch && before != first.end() && before->second->id < event.id) {
      idle.push_back(&event);
    }
  }
  std::reverse(idle.begin(), idle.end());
  return idle;
}

// Returns the waits for the default stream if every launch is on another stream.
Events null_waits(const Events& events) {
  Events waits;
  bool elsewhere = false;
  for (const RecordedEvent* event : events) {
    if (is_launch(*event) && event->event.stream == 0) return {};
    elsewhere = elsewhere || is_launch(*event);
    if (is_wait(*event) && event->event.stream == 0) waits.push_back(event);
  }
  return elsewhere ? waits : Events();
}

void check_waits(const Events& path, Findings& to) {
  if (const Events idle = idle_waits(path); !idle.empty()) {
    to.add(kSyncBetween, idle,
           format_count(idle.size(), "wait", "waits") + " between launches of one stream without a read after it");
  }
  if (const Events waits = null_waits(path); !waits.empty()) {
    to.add(kNullStream, waits,
           format_count(waits.size(), "wait", "waits") + " for the default stream; the launches are on another stream");
  }
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
  if (trims.size() < 2) return;
  to.add(kTrimLoop, trims, "the pool was trimmed " + std::to_string(trims.size()) + " times with launches in between");
}

void check_tiny(const Run& run, Findings& to) {
  std::map<std::string, Events> tiny;
  for (const RecordedEvent* event : run.events) {
    if (!is_launch(*event) || event->event.grid_blocks == 0 || event->event.grid_blocks > kFewBlocks) continue;
    tiny[kernel_of(*event)].push_back(event);
  }
  for (const auto& [kernel, launches] : tiny) {
    if (launches.size() < kManyLaunches) continue;
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
    if (is_allocation(*event)) fresh.push_back(event);
    if (!is_launch(*event)) continue;
    const auto [at, first] = since.try_emplace(kernel_of(*event), fresh.size());
    if (!first && at->second < fresh.size()) {
      const RecordedEvent* allocation = fresh[at->second];
      between[at->first][std::bit_width(allocation->event.bytes)].push_back(allocation);
    }
    at->second = fresh.size();
  }
  Events maximum;
  std::string kernel;
  for (const auto& [name, sizes] : between) {
    for (const auto& [size, allocations] : sizes) {
      // Several kernels of one loop see the same allocations; report only one.
      if (allocations.size() > maximum.size()) maximum = allocations, kernel = name;
    }
  }
  if (maximum.size() < kMaxOfFixedSet) return;
  to.add(kAllocationLoop, maximum,
         format_count(maximum.size(), "allocation", "allocations") + " of about " +
             format_bytes(maximum.front()->event.bytes) + ", one between every two launches of " + kernel);
}

}  // namespace

void check_synchronization(const View& view, Findings& to) {
  for (const Events& path : view.paths) {
    check_waits(path, to);
    check_trims(path, to);
  }
  for (const Run& run : view.runs) {
    check_tiny(run, to);
    check_bins(run, to);
    check_allocations(run, to);
  }
}

Rules synchronization_rules() {
  return {&kSyncBetween, &kNullStream, &kTinyLaunches, &kTrimLoop, &kAllocationLoop, &kHostBins};
}

}  // namespace kiln::audit
