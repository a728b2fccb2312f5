// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

// Thread safety annotations for clang; empty for other compilers. Attributes cannot be functions.
#if defined(__clang__)
#define KILN_ANNOTATE(x) __attribute__((x))
#else
#define KILN_ANNOTATE(x)
#endif
#define KILN_GUARDED_BY(m) KILN_ANNOTATE(guarded_by(m))
#define KILN_REQUIRES(m) KILN_ANNOTATE(requires_capability(m))

namespace kiln {

/// A std::mutex with the annotations that libstdc++ lacks. Most critical sections take well under a microsecond, so
/// `lock` spins briefly before it sleeps, which costs ten microseconds. Thread-safe.
class KILN_ANNOTATE(capability("mutex")) Mutex {
 public:
  void lock() KILN_ANNOTATE(acquire_capability()) {
    for (int look = 0; look < 50; ++look) {
      if (mutex_.try_lock()) return;
      relax();
    }
    mutex_.lock();
  }
  void unlock() KILN_ANNOTATE(release_capability()) { mutex_.unlock(); }

 private:
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  std::mutex mutex_;
};

/// A scope in which a Mutex is locked.
class KILN_ANNOTATE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KILN_ANNOTATE(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() KILN_ANNOTATE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for Mutex. Every wait has a timeout. Thread-safe.
class Condition {
 public:
  /// Returns false on timeout. Spurious wakeups are possible.
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds time) KILN_REQUIRES(mutex) {
    return condition_.wait_for(mutex, time) == std::cv_status::no_timeout;
  }
  void notify_all() { condition_.notify_all(); }
  void notify_one() { condition_.notify_one(); }

 private:
  std::condition_variable_any condition_;
};

}  // namespace kiln
