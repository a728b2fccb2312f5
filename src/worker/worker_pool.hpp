// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files/files.hpp"
#include "base/mutex.hpp"
#include "base/process/system_info.hpp"
#include "base/urgency.hpp"
#include "worker/slot_watch.hpp"
#include "worker/worker.hpp"
#include "worker/worker_slots.hpp"

namespace kiln {

/// Returns the number of workers that this host can run now, based on its cores and its free memory; at least 1.
unsigned recommended_workers(std::uint64_t memory = available_memory());

/// A pool of this process's kiln-worker processes. It starts a worker when there is something to compile, assigns it to
/// one compile at a time and keeps it running for a while. The slots of the host, which all processes of a user share,
/// limit the number of workers. Urgent work goes before background work of every process, and a stopped process does
/// not block others (docs/internals/worker-protocol.md). The first `take` starts the first worker; the destructor ends
/// all workers. Thread-safe.
class WorkerPool {
 public:
  struct Options {
    std::string program;                  ///< path of kiln-worker; empty means search
    std::optional<unsigned> max_workers;  ///< maximum number of workers on this host; empty means by cores and memory
    std::uint64_t memory_limit = std::uint64_t{4} << 30;  ///< memory limit of one worker, in bytes
    std::chrono::milliseconds idle_timeout{20'000};       ///< time after which an idle worker is retired
    std::chrono::milliseconds max_slot_hold{2'000};       ///< time after which a worker gives up its slot if another
                                                          ///< process is waiting
    std::string slots_directory;                          ///< directory of the slots file; empty means the host's
                                                          ///< default
  };
  explicit WorkerPool(Options options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// The requirements of a compile for its worker.
  struct WorkerRequest {
    std::string compiler;                  ///< key of the compiler; a worker that has opened another one does not match
    std::vector<std::string> environment;  ///< environment of the worker; must match, too
    Digest headers{};                      ///< preferred among matching workers: the one that had these headers last
    /// True if a caller waits for the compile: it goes before background work of every process and can use the reserved
    /// slot. Can be raised while the compile waits.
    Urgency urgent = {};
    /// True if the compiler runs programs. The worker then gets a private temporary directory.
    bool runs_programs = false;
    Digest request{};  ///< request that is compiled; also urgent if another process waits for it; zero if unknown
  };

 private:
  struct PooledWorker;

 public:
  /// Exclusive use of a worker for one compile.
  class Handle {
   public:
    Handle(Handle&& other) noexcept : pool_(other.pool_), member_(std::exchange(other.member_, nullptr)) {}
    Handle& operator=(Handle&&) = delete;
    ~Handle();
    Worker& worker();
    /// Sets the key of the compiler that the worker has opened, if it was not known when the worker was requested.
    void set_compiler(std::string compiler);
    /// Marks the worker as unusable: it is killed and not used again.
    void discard() { discarded_ = true; }

   private:
    friend class WorkerPool;
    Handle(WorkerPool& pool, PooledWorker* member) : pool_(pool), member_(member) {}
    WorkerPool& pool_;
    PooledWorker* member_;
    bool discarded_ = false;
  };

  /// Waits for a worker. Returns Code::Unavailable if the program is missing or does not start, and Code::Cancelled if
  /// `stop` was requested or the pool was interrupted.
  Result<Handle> take(const WorkerRequest& request, const std::stop_token& stop);

  /// Kills all workers and starts no more, because the program is ending.
  void interrupt();

  /// Returns true after `interrupt`.
  bool is_ending() const;
  /// Returns the path of the worker program; empty if it is not found.
  std::string program() const { return find_worker(options_.program); }
  std::uint64_t memory_limit() const { return options_.memory_limit; }
  /// Returns the process ids of the current workers, for tests and status output.
  std::vector<pid_t> workers() const;

 private:
  struct Waiter;
  enum class SlotKind : std::uint8_t { General, Reserved, Extra };
  struct TakenSlot {
    WorkerSlots::Slot slot;
    SlotKind kind = SlotKind::General;
  };

  Result<PooledWorker*> wait_for_worker(Waiter& waiter, const std::stop_token& stop) KILN_REQUIRES(mutex_);
  void give_back(PooledWorker* member, bool discarded);
  unsigned current_limit() KILN_REQUIRES(mutex_);
  // Returns the available memory of this machine, read at most a second ago.
  std::uint64_t free_memory() KILN_REQUIRES(mutex_);
  PooledWorker* find_idle(const Waiter& waiter) KILN_REQUIRES(mutex_);
  // Requests the start of one more worker if a slot is available; otherwise returns false.
  bool try_add_worker(Waiter& waiter) KILN_REQUIRES(mutex_);
  std::optional<TakenSlot> take_slot(Waiter& waiter) KILN_REQUIRES(mutex_);
  std::size_t members_on(SlotKind kind) const KILN_REQUIRES(mutex_);
  bool is_urgent(const Waiter& waiter) const;
  void start_manager() KILN_REQUIRES(mutex_);
  // Returns true while background work yields to urgent work of other processes. The time is limited to prevent
  // starvation.
  bool yields(bool urgent_elsewhere) KILN_REQUIRES(mutex_);
  void evict_idle_worker() KILN_REQUIRES(mutex_);
  bool is_starting() const KILN_REQUIRES(mutex_);
  void wake_manager() KILN_REQUIRES(mutex_);

  // Functions of the manager thread. It is the only thread that starts workers, because they end with the thread that
  // started them, and the only one that destroys them.
  void run_manager(int wakeup);
  void start_pending_worker();
  void retire_idle();
  void reap();
  void wait_for_wakeup(int wakeup);

  const Options options_;
  const WorkerSlots slots_;
  mutable Mutex mutex_;
  SlotWatch watch_ KILN_GUARDED_BY(mutex_){slots_};
  Fd wakeup_fd_ KILN_GUARDED_BY(mutex_);  // signaled when the manager thread has work; open during its lifetime
  Condition changed_;
  std::list<std::unique_ptr<PooledWorker>> workers_ KILN_GUARDED_BY(mutex_);
  unsigned failed_starts_ KILN_GUARDED_BY(mutex_) = 0;
  std::optional<Error> last_failure_ KILN_GUARDED_BY(mutex_);
  unsigned urgent_ KILN_GUARDED_BY(mutex_) = 0;                                  // number of urgent waiters
  std::optional<std::chrono::nanoseconds> urgent_seen_ KILN_GUARDED_BY(mutex_);  // time of the last urgent request of
                                                                                 // another process
  std::chrono::nanoseconds urgent_since_ KILN_GUARDED_BY(mutex_){0};             // start of the current period of such
                                                                                 // requests
  std::uint64_t memory_ KILN_GUARDED_BY(mutex_) = 0;
  std::optional<std::chrono::nanoseconds> memory_read_at_ KILN_GUARDED_BY(mutex_);
  bool interrupted_ KILN_GUARDED_BY(mutex_) = false;
  bool ending_ KILN_GUARDED_BY(mutex_) = false;
  std::thread manager_thread_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
