// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "base/mutex.hpp"

namespace kiln {

/// Runs a function once; if the function throws, the next call tries again. Unlike std::call_once, an exception does
/// not end the process if memory runs out, because the C library need not load its unwinder. Not for state that a child
/// of fork uses while its parent may be inside `call`. Thread-safe.
class Once {
 public:
  template <class Function>
  void call(const Function& function) {
    if (done_.load(std::memory_order_acquire)) return;
    const MutexLock lock(mutex_);
    if (done_.load(std::memory_order_relaxed)) return;
    function();
    done_.store(true, std::memory_order_release);
  }

 private:
  Mutex mutex_;
  std::atomic<bool> done_{false};
};

}  // namespace kiln
