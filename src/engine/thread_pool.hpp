// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/process/system_info.hpp"
#include "core/wait_observer.hpp"

namespace kiln {

/// A thread pool that starts threads one at a time when there is work, and keeps them until `stop`. A thread that waits
/// for another process (`WaitObserver`) does not count: if there is work, a substitute is started for it, for at most
/// 64 waiting threads. When a wait ends, one thread exits after its current work item. Until then, more compiles can
/// run at once than the thread limit allows. Thread-safe.
class ThreadPool final : public WaitObserver {
 public:
  struct Options {
    std::string name;             ///< name of its threads, followed by a number
    int niceness = 0;             ///< added to the nice value of the caller
    unsigned max_threads = 0;     ///< 0 means one per core, while each has memory for a compile
    SystemFileRoot machine = {};  ///< source of the available memory
    const Clock* clock = &system_clock();
  };
  /// `work` runs one work item if there is one left. It must not throw.
  ThreadPool(Options options, std::function<void()> work);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Adds work items. Does not wait. Returns false if no thread can be started at all.
  bool submit(std::size_t pieces);

  /// Starts no further work item and waits for those that run. Must not be called on a thread of the pool.
  void stop();
  /// Returns true if the calling thread belongs to any pool.
  static bool is_pool_thread();
  /// Returns the number of threads that were started and are neither joined nor being joined.
  std::size_t unjoined() const;

 private:
  void run(unsigned number, bool needs_memory);
  bool may_start() const KILN_REQUIRES(mutex_);
  bool has_memory() const;
  void begin_wait() noexcept override;
  void end_wait() noexcept override;
  /// Waits for a work item and takes it. Returns false if this thread must exit.
  bool take_piece(bool is_first);
  void exit_on_low_memory();
  /// Removes the calling thread, which is about to exit, from the list. Returns the thread that exited before it, to be
  /// joined outside the lock, so that at most one exited thread is not joined.
  std::thread leave() KILN_REQUIRES(mutex_);
  /// Starts a thread. If that fails, the pool continues with the existing threads.
  void start(bool is_substitute) KILN_REQUIRES(mutex_);
  /// Wakes a thread or starts one.
  void wake_or_start() KILN_REQUIRES(mutex_);

  const Options options_;
  const std::function<void()> work_;  // the pool does not know what its owner does
  mutable Mutex mutex_;
  Condition changed_;
  std::size_t pieces_ KILN_GUARDED_BY(mutex_) = 0;
  unsigned idle_ KILN_GUARDED_BY(mutex_) = 0;
  unsigned started_ KILN_GUARDED_BY(mutex_) = 0;
  unsigned starting_ KILN_GUARDED_BY(mutex_) = 0;     // started threads that have not looked for work yet
  unsigned waiting_ KILN_GUARDED_BY(mutex_) = 0;      // started threads that wait for another process
  unsigned substitutes_ KILN_GUARDED_BY(mutex_) = 0;  // threads started in place of waiting ones
  unsigned alive_ KILN_GUARDED_BY(mutex_) = 0;
  bool stopping_ KILN_GUARDED_BY(mutex_) = false;
  std::chrono::nanoseconds no_memory_until_ KILN_GUARDED_BY(mutex_){0};  // steady time of the clock
  std::vector<std::thread> threads_ KILN_GUARDED_BY(mutex_);
  std::thread left_ KILN_GUARDED_BY(mutex_);  // the last thread that exited before `stop`
};

}  // namespace kiln
