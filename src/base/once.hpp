#pragma once

#include <atomic>

#include "base/mutex.hpp"

namespace kiln {

/// Does something once; where that ends by an exception the next call tries again. Unlike std::call_once, through which
/// an exception ends the process where there is no memory: the C library then loads its unwinder. Not for what a forked
/// child uses that its parent may be in the middle of.
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
