// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>

#include "base/process/process_lifecycle.hpp"

namespace kiln {

/// A T that belongs to one process. A child of fork creates its own and does not touch the parent's instance: its
/// mutexes may be locked permanently, its threads do not exist in the child, and its sockets belong to the parent. The
/// child never destroys it; it stays reachable for leak checkers. The first `get` creates the instance. Thread-safe.
template <class T>
class PerProcess {
 public:
  PerProcess() = default;
  ~PerProcess() {
    Instance* const last = made_.load(std::memory_order_acquire);
    if (last == nullptr) return;
    const bool is_inherited = last->generation != fork_generation();
    if (Instance* const inherited = is_inherited ? last : last->parent_instance) abandon(inherited);
    if (!is_inherited) delete last;
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  /// Returns the instance of this process; creates it with `arguments` if there is none yet.
  template <class... Arguments>
  T& get(const Arguments&... arguments) {
    const unsigned generation = fork_generation();
    Instance* seen = made_.load(std::memory_order_acquire);
    while (seen == nullptr || seen->generation != generation) {
      auto fresh = std::make_unique<Instance>(generation, seen, arguments...);
      if (made_.compare_exchange_strong(seen, fresh.get(), std::memory_order_acq_rel)) return fresh.release()->value;
    }
    return seen->value;
  }
  /// Returns the last instance that was created, in a child perhaps that of its parent; null if there is none.
  T* last() const {
    Instance* const seen = made_.load(std::memory_order_acquire);
    return seen != nullptr ? &seen->value : nullptr;
  }

 private:
  struct Instance {
    template <class... Arguments>
    Instance(unsigned made_in, Instance* parents, const Arguments&... arguments)
        : generation(made_in), parent_instance(parents), value(arguments...) {}
    const unsigned generation;
    Instance* const parent_instance;
    Instance* next_abandoned = nullptr;
    T value;
  };
  static void abandon(Instance* instance) {
    instance->next_abandoned = abandoned_.load(std::memory_order_acquire);
    while (!abandoned_.compare_exchange_weak(instance->next_abandoned, instance, std::memory_order_acq_rel)) {
    }
  }

  inline static std::atomic<Instance*> abandoned_{nullptr};
  std::atomic<Instance*> made_{nullptr};
};

}  // namespace kiln
