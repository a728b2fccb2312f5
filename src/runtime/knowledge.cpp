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

void Knowledge::complain(Session& session, const Event& event) {
  {
    const MutexLock lock(mutex_);
    if (!complained_.insert(event.message).second) return;
  }
  if (const EventCallback tell = session.listeners()) tell(event);
}

std::shared_ptr<const Measured> Knowledge::measured(Session& session) {
  std::uint64_t generation = 0;
  {
    const MutexLock lock(mutex_);
    if (measured_) return measured_;
    generation = generation_;
  }
  auto read = std::make_shared<const Measured>(
      Measured::load(calibration_path(options_), [&](const Event& event) { complain(session, event); }));
  const MutexLock lock(mutex_);
  if (generation == generation_) measured_ = read;
  return read;
}

Crossover Knowledge::crossover(Session& session, const Operation& operation, const Variant& variant) {
  const auto here = measured(session);
  const auto rows = here->crossover(operation, variant.backend);
  if (!rows) return {variant.crossover, false};
  const auto found = device(session, variant.backend);
  if (found && here->is_of(variant.backend, found->name)) return {*rows, true};
  if (found) complain(session, here->of_another_device(variant.backend, found->name));
  return {variant.crossover, false};
}

Crossover Knowledge::likely_crossover(Session& session, const Operation& operation, const Variant& variant) {
  bool opened = false;
  {
    const MutexLock lock(mutex_);
    opened = devices_.count(variant.backend) != 0;
  }
  if (opened) return crossover(session, operation, variant);
  const auto rows = measured(session)->crossover(operation, variant.backend);
  return rows ? Crossover{*rows, true} : Crossover{variant.crossover, false};
}

void Knowledge::forget() {
  const MutexLock lock(mutex_);
  ++generation_;
  devices_.clear();
  warm_.clear();
  measured_.reset();
}

}  // namespace kiln::runtime
