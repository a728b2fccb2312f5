// SPDX-License-Identifier: Apache-2.0
#include "support/fakes/cuda_driver/enter.hpp"

#include <unistd.h>

#include <atomic>

namespace kiln::test::driver {
namespace {

// The process that called Init.
std::atomic<pid_t> initialized_in{0};

}  // namespace

Driver& driver() {
  static Driver* const one = new Driver;  // never destroyed: threads may call at exit
  return *one;
}

bool in_forked_child() {
  const pid_t process = initialized_in.load(std::memory_order_relaxed);
  return process != 0 && process != getpid();
}

DriverResult admit(Model& model, const char* entry, Before before) {
  ++model.calls[entry];
  const auto fault = model.faults.find(entry);
  if (fault != model.faults.end() && fault->second.left-- == 0) {
    fault->second.left = 0;
    const DriverResult error = fault->second.error;
    if (--fault->second.times == 0) model.faults.erase(fault);
    return error;
  }
  return before == Before::Init && !model.initialized ? DriverResult::NotInitialized : DriverResult::Success;
}

void note_initialized(Model& model, bool initialized) {
  model.initialized = initialized;
  initialized_in.store(initialized ? getpid() : 0, std::memory_order_relaxed);
}

void with_model(const std::function<void(Model&)>& body) {
  Driver& one = driver();
  const MutexLock lock(one.mutex);
  body(one.model);
}

}  // namespace kiln::test::driver
