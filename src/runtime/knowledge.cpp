#include "runtime/knowledge.hpp"

#include <chrono>
#include <string>

#include "base/error.hpp"

namespace kiln::runtime {
namespace {

// The first of them is the one that the session works on, unless the program chose another.
Result<DeviceInfo> first_device(Session& session, Backend backend) {
  auto devices = session.devices(to_string(backend));
  if (!devices) return std::move(devices).error();
  if (devices->empty()) return failure(Code::Unavailable, "the driver lists no device");
  return devices->front();
}

}  // namespace

Result<DeviceInfo> Knowledge::device(Session& session, Backend backend) {
  std::uint64_t generation = 0;
  {
    const MutexLock lock(mutex_);
    const auto known = devices_.find(backend);
    if (known != devices_.end()) return known->second;
    generation = generation_;
  }
  Result<DeviceInfo> found = first_device(session, backend);
  const MutexLock lock(mutex_);
  if (generation == generation_) devices_.emplace(backend, found);
  return found;
}

bool Knowledge::is_warm(Session& session, const Needs* needs) {
  if (needs == nullptr) return true;
  {
    const MutexLock lock(mutex_);
    if (warm_.count(needs) != 0) return true;
  }
  // With no time it requests, looks at what is in memory, and returns.
  if (!Plan(needs->name()).stage(*needs).ensure_warm(session, std::chrono::nanoseconds(0)).empty()) return false;
  const MutexLock lock(mutex_);
  warm_.insert(needs);
  return true;
}

Crossover Knowledge::crossover(Session&, const Operation&, const Variant& variant) {
  return {variant.crossover, false};
}

Crossover Knowledge::least_crossover(const Operation&, const Variant& variant) { return {variant.crossover, false}; }

void Knowledge::forget() {
  const MutexLock lock(mutex_);
  ++generation_;
  devices_.clear();
  warm_.clear();
}

}  // namespace kiln::runtime
