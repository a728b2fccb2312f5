#pragma once

#include <atomic>
#include <memory>

#include "base/process_life.hpp"

namespace kiln {

/// A T that this process has to itself. A child of fork gets a fresh one and leaves its parent's alone, whose mutexes
/// may be locked for ever in it, whose threads are not there and whose sockets are the parent's: that one is never
/// destroyed in the child. Any thread. Nothing is made before the first `get`.
template <class T>
class PerProcess {
 public:
  PerProcess() = default;
  ~PerProcess() {
    Made* const last = made_.load(std::memory_order_acquire);
    if (last != nullptr && last->generation == fork_generation()) delete last;
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  /// `arguments` are for making it, where this process has none yet.
  template <class... Arguments>
  T& get(const Arguments&... arguments) {
    const unsigned generation = fork_generation();
    Made* seen = made_.load(std::memory_order_acquire);
    while (seen == nullptr || seen->generation != generation) {
      auto fresh = std::make_unique<Made>(generation, seen, arguments...);
      if (made_.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel)) return fresh.release()->own;
    }
    return seen->own;
  }

 private:
  struct Made {
    template <class... Arguments>
    Made(unsigned made_in, Made* parents, const Arguments&... arguments)
        : generation(made_in), before(parents), own(arguments...) {}
    const unsigned generation;
    Made* const before;  // the parent's, kept reachable for leak checkers
    T own;
  };
  std::atomic<Made*> made_{nullptr};
};

}  // namespace kiln
