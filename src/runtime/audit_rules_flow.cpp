// Does the host wait between launches, and does it drive the device piece by piece.
#include <algorithm>
#include <bit>
#include <map>

#include "runtime/audit_view.hpp"

namespace kiln::audit {
namespace {

constexpr Rule kSyncBetween{"sync_between_launches",
                            Step::NoSynchronisation,
                            Severity::High,
                            true,
                            "the host waits for a stream between launches that are ordered anyway, and reads nothing",
                            "take the wait out: launches on one stream run in their order"};
constexpr Rule kNullStream{"null_stream_sync",
                           Step::NoSynchronisation,
                           Severity::High,
                           true,
                           "a wrapper waits for the default stream while its work is on another",
                           "wait for the caller's stream, or better for none: the default one waits for every other"};
constexpr Rule kTinyLaunches{
    "many_tiny_launches",
    Step::NoHostBatching,
    Severity::High,
    true,
    "the host launches a kernel for each group, and each launch is too small to fill the device",
    "launch once over all groups, with offsets in device memory that say where each begins"};
constexpr Rule kTrimLoop{"trim_in_loop",
                         Step::NoHostBatching,
                         Severity::High,
                         true,
                         "the pool gives its memory back in a loop, and takes it again",
                         "trim once, when the work is done, or give the pool a limit"};
constexpr Rule kAllocationLoop{"allocation_in_loop",
                               Step::NoHostBatching,
                               Severity::Medium,
                               true,
                               "device memory is allocated anew for each turn of a loop",
                               "allocate once before the loop, as much as the largest turn needs"};

constexpr std::size_t kMostOfFixedSet = 8;  // launches of one kernel in a loop that nobody need mind
constexpr std::size_t kManyLaunches = 16;   // of one kernel in one run …
constexpr std::uint64_t kFewBlocks = 8;     // … with no more blocks than this each

bool is_wait(const RecordedEvent& event) {
  return is(event, Event::Kind::Synchronised) && event.event.work.purpose != Purpose::Trace;
}

// Waits that stand between two launches of their stream, with nothing read before the second.
Events idle_waits(const Events& events) {
  enum class Next : unsigned char { Nothing, Launch, Read };
  std::map<std::uint64_t, const RecordedEvent*> first;  // launch of each stream
  for (const RecordedEvent* event : events) {
    if (is_launch(*event)) first.try_emplace(event->event.stream, event);
  }
  Events idle;
  std::map<std::uint64_t, Next> next;
  for (auto at = events.rbegin(); at != events.rend(); ++at) {
    const RecordedEvent& event = **at;
    Next& here = next[event.event.stream];
    if (is_launch(event)) here = Next::Launch;
    if (is_copy_out(event) && event.event.work.purpose != Purpose::Trace) here = Next::Read;
    const auto before = first.find(event.event.stream);
    if (is_wait(event) && here == Next::Launch && before != first.end() && before->second->id < event.id) {
      idle.push_back(&event);
    }
  }
  std::reverse(idle.begin(), idle.end());
  return idle;
}

// Waits for the default stream where every launch is on another.
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
           counted(idle.size(), "wait", "waits") + " between launches of one stream, with nothing read after");
  }
  if (const Events waits = null_waits(path); !waits.empty()) {
    to.add(kNullStream, waits,
           counted(waits.size(), "wait", "waits") + " for the default stream; the launches are on another");
  }
}

void check_trims(const Events& path, Findings& to) {
  Events trims;
  bool launched = false;  // after a trim
  for (const RecordedEvent* event : path) {
    if (is(*event, Event::Kind::MemoryTrimmed) && (trims.empty() || launched)) {
      trims.push_back(event);
      launched = false;
    }
    launched = launched || is_launch(*event);
  }
  if (trims.size() < 2) return;
  to.add(kTrimLoop, trims, "the pool was trimmed " + std::to_string(trims.size()) + " times, with launches between");
}

void check_tiny(const Run& run, Findings& to) {
  std::map<std::string, Events> tiny;
  for (const RecordedEvent* event : run.events) {
    if (!is_launch(*event) || event->event.blocks == 0 || event->event.blocks > kFewBlocks) continue;
    tiny[kernel_of(*event)].push_back(event);
  }
  for (const auto& [kernel, launches] : tiny) {
    if (launches.size() < kManyLaunches) continue;
    std::uint64_t most = 0;
    for (const RecordedEvent* launch : launches) most = std::max(most, launch->event.blocks);
    to.add(kTinyLaunches, launches,
           std::to_string(launches.size()) + " launches of " + kernel + " in one run, of at most " +
               counted(most, "block", "blocks") + " each",
           kernel);
  }
}

// For each kernel of a run, by the size as a power of two: an allocation that came between two of its launches.
void check_allocations(const Run& run, Findings& to) {
  std::map<std::string, std::map<int, Events>> between;
  std::map<std::string, std::size_t> since;  // where in `fresh` a kernel's last launch was
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
  Events most;
  std::string kernel;
  for (const auto& [name, sizes] : between) {
    for (const auto& [size, allocations] : sizes) {
      // Several kernels of one loop see the same allocations: it is told once.
      if (allocations.size() > most.size()) most = allocations, kernel = name;
    }
  }
  if (most.size() < kMostOfFixedSet) return;
  to.add(kAllocationLoop, most,
         counted(most.size(), "allocation", "allocations") + " of about " + size_text(most.front()->event.bytes) +
             ", one between each two launches of " + kernel);
}

}  // namespace

void check_flow(const View& view, Findings& to) {
  for (const Events& path : view.paths) {
    check_waits(path, to);
    check_trims(path, to);
  }
  for (const Run& run : view.runs) {
    check_tiny(run, to);
    check_allocations(run, to);
  }
}

}  // namespace kiln::audit
