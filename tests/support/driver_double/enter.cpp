#include "support/driver_double/enter.hpp"

#include <unistd.h>

#include <atomic>

#include "base/mutex.hpp"

namespace kiln::test::driver {
namespace {

// A driver is one for a process, as its functions have no handle to it. Never destroyed: threads may call at exit.
struct Driver {
  Mutex mutex;
  Model model;
};

Driver& driver() {
  static Driver* const one = [] {
    auto* made = new Driver;
    made->model.configure(nullptr);
    return made;
  }();
  return *one;
}

// The process that called Init. A child of fork cannot use its parent's driver, and must not wait for a lock that
// nobody there will give back.
std::atomic<pid_t> initialised_in{0};

bool in_forked_child() {
  const pid_t process = initialised_in.load(std::memory_order_relaxed);
  return process != 0 && process != getpid();
}

/// Whether this call was told to fail, and with what.
DriverResult injected(Model& model, const char* entry) {
  ++model.calls[entry];
  const auto fault = model.faults.find(entry);
  if (fault == model.faults.end()) return DriverResult::Success;
  if (fault->second.left > 0) {
    --fault->second.left;
    return DriverResult::Success;
  }
  const DriverResult error = fault->second.error;
  if (--fault->second.times == 0) model.faults.erase(fault);
  return error;
}

}  // namespace

Entered::Entered(const char* entry, Before before) {
  if (in_forked_child()) {
    result_ = DriverResult::NotInitialized;
    return;
  }
  driver().mutex.lock();
  locked_ = true;
  Model& model = driver().model;
  result_ = injected(model, entry);
  if (result_ == DriverResult::Success && before == Before::Init && !model.initialised) {
    result_ = DriverResult::NotInitialized;
  }
  if (result_ == DriverResult::Success) model_ = &model;
}

Entered::~Entered() {
  if (locked_) driver().mutex.unlock();
}

void note_initialised(Model& model, bool initialised) {
  model.initialised = initialised;
  initialised_in.store(initialised ? getpid() : 0, std::memory_order_relaxed);
}

void with_model(const std::function<void(Model&)>& body) {
  Driver& one = driver();
  const MutexLock lock(one.mutex);
  body(one.model);
}

}  // namespace kiln::test::driver
