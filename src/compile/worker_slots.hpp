#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/lock_file.hpp"

namespace kiln {

/// How many workers this host bears for this user: bytes of one file in the user's host-local folder, each locked by
/// the process that has a worker for it and let go by the kernel when that process dies, however it dies. Any thread;
/// usable in a child after fork, which has none of its parent's. Where the folder cannot be used there is no such
/// bound, and `take` always succeeds: slots save memory, they never carry correctness.
class WorkerSlots {
 public:
  /// `folder` is where the file `slots` lies; empty for `host_local_directory()`. Nothing is opened before `take`.
  explicit WorkerSlots(std::string folder = {});

  /// The right to have one worker, until it is destroyed. May be released on another thread.
  class Slot {
   public:
    Slot(Slot&& other) noexcept;
    Slot& operator=(Slot&& other) noexcept;
    ~Slot();

   private:
    friend class WorkerSlots;
    Slot(LockFile* file, off_t byte) : file_(file), byte_(byte) {}
    LockFile* file_ = nullptr;  // null: nothing to let go
    off_t byte_ = 0;
  };

  /// One of the first `most` slots; nothing where others have them all. Does not wait.
  std::optional<Slot> take(unsigned most);

  /// While it lives, the other processes of this user see that this one would like to have a slot. One or many at a
  /// time in a process, it is the same.
  class Wish {
   public:
    Wish(Wish&& other) noexcept;
    Wish& operator=(Wish&& other) noexcept;
    ~Wish();

   private:
    friend class WorkerSlots;
    explicit Wish(WorkerSlots* slots) : slots_(slots) {}
    WorkerSlots* slots_ = nullptr;
  };
  Wish wish();
  /// Whether another process has a wish. Costs one system call.
  bool wanted_elsewhere();

 private:
  LockFile* file();

  const std::string folder_;
  Mutex mutex_;
  LockFile* file_ KILN_GUARDED_BY(mutex_) = nullptr;
  bool failed_ KILN_GUARDED_BY(mutex_) = false;
  unsigned wishes_ KILN_GUARDED_BY(mutex_) = 0;
};

/// How many workers at once are good for a machine: one per core, as far as memory reaches, and at least one.
struct WorkerBudget {
  unsigned cores = 1;               ///< that this process may use: affinity and its control group's share
  std::uint64_t memory = 0;         ///< that can be had now, without the reserve
  std::uint64_t worker_bytes = 0;   ///< what one worker takes
  std::uint64_t reserve_bytes = 0;  ///< what stays for everyone else
};
unsigned workers_within(const WorkerBudget& budget);

}  // namespace kiln
