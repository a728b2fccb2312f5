// SPDX-License-Identifier: Apache-2.0
#include "runtime/dispatch/machine_info_cache.hpp"

#include <chrono>
#include <string>

#include "base/error.hpp"
#include "base/visible_text.hpp"

namespace kiln::runtime {
namespace {

// The session uses the first device unless the program selects another one.
Result<DeviceInfo> first_device(Session& session, Backend backend) {
  auto devices = session.devices(device_backend(backend));
  if (!devices) return std::move(devices).error();
  if (devices->empty()) return make_error(Code::Unavailable, "the driver lists no device");
  return devices->front();
}

}  // namespace

Result<DeviceInfo> MachineInfoCache::device(Session& session, Backend backend) {
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

bool MachineInfoCache::is_warm(Session& session, const Requirements* requirements) {
  if (requirements == nullptr) return true;
  {
    const MutexLock lock(mutex_);
    if (warm_.count(requirements) != 0) return true;
  }
  // With a timeout of 0 this requests the units, checks the memory tier and returns.
  if (!WarmupPlan(requirements->name()).stage(*requirements).ensure_warm(session, std::chrono::nanoseconds(0)).empty())
    return false;
  const MutexLock lock(mutex_);
  warm_.insert(requirements);
  return true;
}

void MachineInfoCache::warn(Session& session, const Event& event) {
  {
    const MutexLock lock(mutex_);
    if (!complained_.insert(event.message).second) return;
  }
  if (const EventCallback emit = session.event_callback()) {
    emit(event);
  } else {
    print_warning(event.message);
  }
}

std::shared_ptr<const LoadedCalibration> MachineInfoCache::measured(Session& session) {
  std::uint64_t generation = 0;
  {
    const MutexLock lock(mutex_);
    if (measured_) return measured_;
    generation = generation_;
  }
  auto read = std::make_shared<const LoadedCalibration>(
      LoadedCalibration::load(calibration_path(options_), [&](const Event& event) { warn(session, event); }));
  const MutexLock lock(mutex_);
  if (generation == generation_) measured_ = read;
  return read;
}

Crossover MachineInfoCache::crossover(Session& session, const Operation& operation, const Variant& variant) {
  const auto here = measured(session);
  const auto rows = here->crossover(operation, variant.backend);
  if (!rows) return {variant.crossover, false};
  const auto found = device(session, variant.backend);
  if (found && here->matches_device(variant.backend, found->name)) return {*rows, true};
  if (found) warn(session, here->device_mismatch_event(variant.backend, found->name));
  return {variant.crossover, false};
}

Crossover MachineInfoCache::estimated_crossover(Session& session, const Operation& operation, const Variant& variant) {
  bool opened = false;
  {
    const MutexLock lock(mutex_);
    opened = devices_.count(variant.backend) != 0;
  }
  if (opened) return crossover(session, operation, variant);
  const auto rows = measured(session)->crossover(operation, variant.backend);
  return rows ? Crossover{*rows, true} : Crossover{variant.crossover, false};
}

void MachineInfoCache::invalidate() {
  const MutexLock lock(mutex_);
  ++generation_;
  devices_.clear();
  warm_.clear();
  measured_.reset();
}

}  // namespace kiln::runtime
