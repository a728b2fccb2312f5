// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files/lock_file.hpp"

namespace kiln {

/// The limit on the number of workers of one user on this host. Slots are bytes of one file in the user's host-local
/// directory. The process that has a worker locks a byte; the kernel releases the lock when the process dies. If the
/// directory is unusable there is no limit, and `take` always succeeds: slots save memory, correctness does not depend
/// on them. Usable in a child after fork, which holds none of its parent's slots.
///
/// There are three kinds of slots. General slots are for any work. One slot is reserved for urgent work. Extra slots
/// replace slots whose holder is stuck; a `SlotWatch` decides when one can be taken.
///
/// The only state in memory is that of `LockFile`: several instances on one directory are equivalent to one, and a
/// forked child finds no locked mutex. Nothing else must open the file (docs/internals/decisions/0002.md).
/// Thread-safe.
class WorkerSlots {
 public:
  /// `directory` contains the file `slots`; empty means `host_local_directory()`. The first call opens or creates the
  /// file.
  explicit WorkerSlots(std::string directory = {}) : directory_(std::move(directory)) {}

  /// The number of a slot: general ones start at 0, the others follow the highest number of a general slot.
  using Index = std::uint32_t;
  static constexpr Index kReserved = Index{1} << 20;
  static constexpr Index kFirstExtra = kReserved + 1;
  static constexpr Index kMaxExtras = 8;

  /// The right to run one worker, for the lifetime of the object. It can be released on another thread and can outlive
  /// its `WorkerSlots`.
  class Slot {
   public:
    Slot() = default;  ///< if there is no limit
    Slot(LockFile& file, Index index);
    /// Publishes the worker that is compiling, so that other processes can see whether it makes progress; 0 for an idle
    /// worker. Not thread-safe.
    void show_worker(pid_t worker);

   private:
    LockFile* file_ = nullptr;
    Index index_ = 0;
    LockFile::ScopedLock slot_;
    LockFile::ScopedLock worker_;
  };
  /// Takes one of the first `maximum` general slots; returns nothing if all are held. Does not wait.
  std::optional<Slot> take(unsigned maximum) const;
  /// Takes the slot for urgent work; returns nothing if it is held. Does not wait.
  std::optional<Slot> take_reserved() const;
  /// Takes an extra slot by its number from 0; returns nothing if it is held or if there is no limit. Does not wait.
  std::optional<Slot> take_extra(Index number) const;

  /// The process that holds a slot, possibly this one, and its compiling worker.
  struct Holder {
    bool is_held = false;
    pid_t process = 0;  ///< 0 if unknown, for example in another container
    pid_t worker = 0;   ///< 0 if unknown or if the worker is idle
    bool operator==(const Holder&) const = default;
  };
  std::vector<Holder> holders(Index first, Index count) const;

  /// Announces to the other processes of this user that this one waits for a slot, for the lifetime of the object.
  /// Several in one process count as one.
  using SlotRequest = LockFile::ScopedLock;
  SlotRequest announce_request(bool urgent = false) const;
  /// Returns true if another process that is not stopped waits for a slot. Costs a few system calls (microseconds).
  bool has_other_waiters() const;
  /// Returns true if one of these requests is urgent.
  bool urgent_elsewhere() const;

  /// Announces that a caller waits for the result of this request, for the lifetime of the object. Returns an empty
  /// object if another caller already does so.
  SlotRequest await(const Digest& request) const;
  /// Returns true if a caller in any process waits for this request.
  bool is_awaited(const Digest& request) const;

 private:
  bool has_requests(off_t first, off_t length) const;

  const std::string directory_;
};

/// The input for the number of workers of a machine: one per core if memory allows, and at least one.
struct WorkerBudget {
  unsigned cores = 1;               ///< cores available to this process, by affinity and control group
  std::uint64_t memory = 0;         ///< available memory in bytes, including the reserve
  std::uint64_t worker_bytes = 0;   ///< memory of one worker
  std::uint64_t reserve_bytes = 0;  ///< memory reserved for other processes
};
unsigned workers_for_budget(const WorkerBudget& budget);

}  // namespace kiln
