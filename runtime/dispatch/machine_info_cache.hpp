// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_set>

#include <kiln/runtime/runtime.hpp>

#include "base/mutex.hpp"
#include "runtime/calibration/loaded_calibration.hpp"

namespace kiln::runtime {

/// The number of rows at or above which a device is used, and whether it was measured on this machine.
struct Crossover {
  std::uint64_t rows = kNoCrossover;
  bool measured = false;
};

/// A cache of information about this machine: devices, ready units and crossovers. Each item is queried at first use
/// and cached until `invalidate`. Thread-safe.
class MachineInfoCache {
 public:
  explicit MachineInfoCache(const RuntimeOptions& options) : options_(options) {}

  /// Returns the device of a backend, or an error that names what is missing. Opens the driver.
  Result<DeviceInfo> device(Session& session, Backend backend);
  /// Returns true if all units of `requirements` are ready; requests those that are not. Does not wait.
  bool is_warm(Session& session, const Requirements* requirements);

  /// Returns the crossover of a variant whose device is present.
  Crossover crossover(Session& session, const Operation& operation, const Variant& variant);
  /// Estimates the result of `crossover` without opening the driver. It differs only if the device is not the one that
  /// was measured.
  Crossover estimated_crossover(Session& session, const Operation& operation, const Variant& variant);

  /// Emits the event to the session, or prints it if nothing listens; each message only once.
  void warn(Session& session, const Event& event);
  void invalidate();

 private:
  std::shared_ptr<const LoadedCalibration> measured(Session& session);

  const RuntimeOptions& options_;
  Mutex mutex_;
  std::uint64_t generation_ KILN_GUARDED_BY(mutex_) =
      0;  // results of queries that began before an `invalidate` are not cached
  std::map<Backend, Result<DeviceInfo>> devices_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<const Requirements*> warm_ KILN_GUARDED_BY(mutex_);
  std::shared_ptr<const LoadedCalibration> measured_ KILN_GUARDED_BY(mutex_);
  std::set<std::string> complained_ KILN_GUARDED_BY(mutex_);  // emitted messages; not cleared by `invalidate`
};

}  // namespace kiln::runtime
