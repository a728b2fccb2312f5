// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "base/process/system_info.hpp"
#include "worker/worker_slots.hpp"

namespace kiln {

/// A monitor of the holders of worker slots, in other processes and in this one. It decides when an extra slot can be
/// taken because a holder is stuck. A holder is stuck if
/// - it is stopped, by a signal or a debugger, in two consecutive checks;
/// - or its worker has a compile, is not runnable and has used no CPU time for two seconds;
/// - or its worker is unknown (it is in another container, is starting, or is idle and should have been released) and
/// no slot has changed for ten seconds.
/// At most one extra slot has a holder that is not stuck. Not thread-safe.
class SlotWatch {
 public:
  explicit SlotWatch(const WorkerSlots& slots, SystemFileRoot files = {}) : slots_(slots), files_(std::move(files)) {}

  struct Verdict {
    /// Number of the extra slot that can be taken if it is free; the holders of all lower ones are stuck. Empty if no
    /// extra slot can be taken.
    std::optional<WorkerSlots::Index> extra;
    bool all_stuck = false;  ///< true if no holder of a general slot makes progress
  };
  /// Checks the holders. `maximum` is the number of general slots; for urgent work the reserved one counts too. A check
  /// costs about ten microseconds per slot, so there are at most four per second. Calls in between return the last
  /// result.
  Verdict look(unsigned maximum, bool urgent, std::chrono::nanoseconds now);

 private:
  using Index = WorkerSlots::Index;
  using Holder = WorkerSlots::Holder;
  // The observed state of a slot.
  struct Seen {
    Holder holder;
    std::optional<std::uint64_t> cpu_time;  // empty if its worker is not known
    std::chrono::nanoseconds since{0};      // time when the slot last changed or its worker last made progress
    int looks_stopped = 0;                  // number of consecutive checks
  };
  void refresh(Index general, std::chrono::nanoseconds now);
  void update(Index first, const std::vector<Holder>& holders, std::chrono::nanoseconds now);
  void update(Seen& seen, const Holder& holder, std::chrono::nanoseconds now);
  bool is_stuck(Index index) const;
  bool is_held(Index index) const;

  const WorkerSlots& slots_;
  const SystemFileRoot files_;
  std::map<Index, Seen> seen_;
  std::optional<std::chrono::nanoseconds> looked_;
  std::chrono::nanoseconds changed_{0};  // time when any slot last changed or any worker last made progress
};

}  // namespace kiln
