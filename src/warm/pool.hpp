#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/machine.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// Threads that are started when there is something to do, one after the other, and stay until `stop`.
class Pool {
 public:
  struct Options {
    std::string name;           ///< of its threads, with a number behind it
    int niceness = 0;           ///< how far below the caller's the priority of its threads is
    unsigned most_threads = 0;  ///< 0: one per core, as long as each finds memory for a compile
    MachineFiles machine = {};  ///< which say how much of it there is
  };
  /// `work` does one piece, if there is still one; it must not throw.
  Pool(Options options, std::function<void()> work);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// That many more pieces are to be done. Never waits. False where no thread can be had at all.
  bool add(std::size_t pieces);

  /// No piece is begun any more, and when it returns none runs. Not to be called from one of its own threads.
  void stop();
  /// Whether the calling thread is one of any pool's.
  static bool on_a_thread();

 private:
  void run(unsigned number);
  bool may_start() const KILN_REQUIRES(mutex_);
  bool has_memory() const;
  void leave_for_want_of_memory();
  /// Where no thread can be had there is none more.
  void start() KILN_REQUIRES(mutex_);
  /// Wakes a thread, or starts one.
  void call_another() KILN_REQUIRES(mutex_);

  const Options options_;
  const std::function<void()> work_;
  mutable Mutex mutex_;
  Condition changed_;
  std::size_t pieces_ KILN_GUARDED_BY(mutex_) = 0;
  unsigned idle_ KILN_GUARDED_BY(mutex_) = 0;
  unsigned started_ KILN_GUARDED_BY(mutex_) = 0;
  unsigned starting_ KILN_GUARDED_BY(mutex_) = 0;  // of those, the ones that have not looked for work yet
  unsigned alive_ KILN_GUARDED_BY(mutex_) = 0;
  bool stopping_ KILN_GUARDED_BY(mutex_) = false;
  std::chrono::nanoseconds no_memory_until_ KILN_GUARDED_BY(mutex_){0};  // of the clock's steady time
  std::vector<std::thread> threads_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
