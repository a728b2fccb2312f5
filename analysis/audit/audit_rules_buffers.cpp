// SPDX-License-Identifier: Apache-2.0
// Audit rules: device memory that is allocated piece by piece instead of once.
#include <algorithm>
#include <optional>
#include <utility>

#include "analysis/audit/audit_view.hpp"

namespace kiln::audit {
namespace {

/// In one stage, three buffers in a row that each replaced one that was released: its bytes were copied on the
/// device, or it was smaller by a third or more and the same kernel came next. Outside of runs only copies count.
constexpr Rule kResized{"output_resized",
                        Check::NoHostBatching,
                        Severity::Medium,
                        true,
                        "an output grows in steps, and each step allocates a larger buffer and releases the last one",
                        "count first and read the total once, then allocate the output with its final size"};
/// 64 allocations or more of at most 256 bytes in a declared run.
constexpr Rule kManySmall{"many_small_allocations",
                          Check::NoHostBatching,
                          Severity::Medium,
                          true,
                          "each row or group has its own small buffer",
                          "put all rows in one buffer, with their offsets in a second one"};

constexpr std::size_t kSteps = 3;             // of growth
constexpr std::uint64_t kMaxGrowth = 8;       // a buffer that is larger by more than this is another buffer
constexpr std::size_t kLookBack = 4;          // allocations that can have replaced a released buffer
constexpr std::uint64_t kOneRow = 256;        // bytes
constexpr std::size_t kManyAllocations = 64;  // in one run

/// The chains of buffers of a run in which each one replaced a smaller one. Not thread-safe.
class Growth {
 public:
  /// `only_copies` accepts only replacements whose old bytes were copied on the device.
  explicit Growth(bool only_copies) : only_copies_(only_copies) {}

  void see(const RecordedEvent& event) {
    if (is_allocation(event)) {
      allocate(event);
    } else if (is(event, Event::Kind::Allocated)) {
      release(event);
    } else if (is_launch(event)) {
      for (; launched_ < held_.size(); ++launched_) held_[launched_].kernel = kernel_of(event);
    } else if (is(event, Event::Kind::Copied) && event.event.message == "on the device") {
      moved_ = event.event.bytes;
    } else if (is_copy_out(event) && event.event.bytes > kScalar) {
      // The host has the rows: what follows is another output.
      released_.reset();
    }
  }
  /// Returns the allocations of the longest chain, without its first one. A chain without copies has the same kernel
  /// after each of them: other temporary buffers of growing sizes are no chain.
  Events longest() const {
    std::vector<std::size_t> steps(held_.size());
    std::size_t best = 0;
    for (std::size_t i = 0; i < held_.size(); ++i) {
      const Held& held = held_[i];
      if (!held.replaced) continue;
      const bool continues = held.copied || held.kernel == held_[*held.replaced].kernel;
      steps[i] = 1 + (continues ? steps[*held.replaced] : 0);
      if (steps[i] > steps[best]) best = i;
    }
    Events chain;
    for (std::size_t left = steps.empty() ? 0 : steps[best]; left > 0; --left, best = *held_[best].replaced) {
      chain.push_back(held_[best].allocation);
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

 private:
  struct Held {
    const RecordedEvent* allocation;
    std::optional<std::size_t> replaced;
    bool copied = false;      // the bytes of the replaced one were copied on the device
    std::string_view kernel;  // of the first launch after the allocation
  };

  void allocate(const RecordedEvent& event) {
    held_.push_back({&event, std::nullopt, false, {}});
    live_[event.event.bytes].push_back(held_.size() - 1);
    if (released_) link(*std::exchange(released_, std::nullopt), held_.size() - 1);
  }
  void release(const RecordedEvent& event) {
    std::vector<std::size_t>& same = live_[event.event.bytes];
    if (same.empty()) return;
    const std::size_t old = same.back();
    same.pop_back();
    // The buffer that replaces it was allocated before, or is the next one.
    for (std::size_t at = held_.size(); at > old + 1 && held_.size() - at < kLookBack; --at) {
      if (link(old, at - 1)) return;
    }
    released_ = old;
  }
  // Makes `fresh` the replacement of `old` if it is larger by half, or if the bytes of `old` were copied on the device.
  bool link(std::size_t old, std::size_t fresh) {
    const Event& before = held_[old].allocation->event;
    const Event& after = held_[fresh].allocation->event;
    const bool copied = moved_ == before.bytes;
    const bool grown = copied || (!only_copies_ && after.bytes - before.bytes >= before.bytes / 2);
    const bool larger = after.bytes > before.bytes && after.bytes / kMaxGrowth <= before.bytes;
    if (!larger || !grown || held_[fresh].replaced || before.context.stage != after.context.stage) return false;
    held_[fresh].replaced = old;
    held_[fresh].copied = copied;
    moved_ = 0;
    return true;
  }

  const bool only_copies_;
  std::vector<Held> held_;
  std::size_t launched_ = 0;                                // number of buffers with a launch after them
  std::map<std::uint64_t, std::vector<std::size_t>> live_;  // by size
  std::optional<std::size_t> released_;                     // the last released buffer that nothing has replaced
  std::uint64_t moved_ = 0;                                 // bytes of the last copy on the device
};

void check_growth(const Run& run, Findings& to) {
  Growth growth(run.number == 0);
  for (const RecordedEvent* event : run.events) growth.see(*event);
  const Events chain = growth.longest();
  if (chain.size() < kSteps) return;
  to.add(kResized, chain,
         "a buffer was replaced by a larger one " + std::to_string(chain.size()) + " times, up to " +
             format_bytes(chain.back()->event.bytes));
}

// A run without a number can be as long as its thread; many small buffers in it are no sign of a loop.
void check_small(const Run& run, Findings& to) {
  if (run.number == 0) return;
  Events small;
  for (const RecordedEvent* event : run.events) {
    // A profile of PyTorch does not have the sizes of all allocations.
    const bool known = event->event.bytes != 0;
    if (is_allocation(*event) && known && event->event.bytes <= kOneRow) small.push_back(event);
  }
  if (small.size() < kManyAllocations) return;
  to.add(kManySmall, small,
         std::to_string(small.size()) + " allocations of at most " + format_bytes(kOneRow) + " in one run");
}

}  // namespace

void check_buffers(const View& view, Findings& to) {
  for (const Run& run : view.runs) {
    check_growth(run, to);
    check_small(run, to);
  }
}

Rules buffer_rules() { return {&kResized, &kManySmall}; }

}  // namespace kiln::audit
