#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/lock_file.hpp"

namespace kiln {

/// How many workers this host bears for this user: bytes of one file in the user's host-local folder, each locked by
/// the process that has a worker for it and let go by the kernel when that process dies, however it dies. Any thread;
/// usable in a child after fork, which has none of its parent's. Where the folder cannot be used there is no such
/// bound, and `take` always succeeds: slots save memory, they never carry correctness.
///
/// There is no state in memory but LockFile's: several of these on one folder are as good as one, and a child of fork
/// finds no mutex locked. Nothing else may open the file (docs/decisions/0002-claims-by-record-locks.md).
class WorkerSlots {
 public:
  /// `folder` is where the file `slots` lies; empty for `host_local_directory()`. Nothing is opened or made before the
  /// first question.
  explicit WorkerSlots(std::string folder = {}) : folder_(std::move(folder)) {}

  /// The right to have one worker, until it is destroyed. May be released on another thread, and may outlive the
  /// WorkerSlots that it is from.
  using Slot = LockFile::Hold;
  /// One of the first `most` slots; nothing where others have them all. Does not wait.
  std::optional<Slot> take(unsigned most) const;

  /// While it lives, the other processes of this user see that this one would like to have a slot. One or many at a
  /// time in a process, it is the same.
  using Wish = LockFile::Hold;
  Wish wish() const;
  /// Whether another process has a wish. Costs some system calls, a few microseconds.
  bool wanted_elsewhere() const;

 private:
  const std::string folder_;
};

/// How many workers at once are good for a machine: one per core, as far as memory reaches, and at least one.
struct WorkerBudget {
  unsigned cores = 1;               ///< that this process may use: affinity and its control group's share
  std::uint64_t memory = 0;         ///< that can be had now, the reserve included
  std::uint64_t worker_bytes = 0;   ///< what one worker takes
  std::uint64_t reserve_bytes = 0;  ///< what stays for everyone else
};
unsigned workers_within(const WorkerBudget& budget);

}  // namespace kiln
