// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/session.hpp>

#include "backends/cccl/cccl_module.hpp"
#include "base/mutex.hpp"
#include "events/event_emitter.hpp"
#include "session/driver_backend.hpp"
#include "session/lazy_components.hpp"

namespace kiln {

/// Returns true if a setting is given by the environment or by the program. Ignores configuration files, because it is
/// used before they are opened.
bool is_set(const SessionOptions& options, const char* setting, const char* variable);

/// The drivers of a session by kind of units. An object is created when it is first needed; its driver is opened by
/// `DriverBackend::open`. Thread-safe.
class Drivers {
 public:
  /// The references must outlive the object.
  Drivers(const SessionOptions& options, LazyComponents& components, const EventEmitter& emitter)
      : options_(options), components_(components), emitter_(emitter) {}

  /// Returns whether a device for this kind seems to be present. Opens no driver; reports a missing device once.
  bool has_device(const std::string& kind);
  /// Returns true if all devices of a kind are CPUs: those of the driver if it is open, otherwise those that the
  /// installed drivers seem to have. Opens no driver.
  bool has_only_cpu_devices(const std::string& kind) const;
  /// Returns the driver of a kind; null for kinds that no driver loads.
  DriverBackend* get(const std::string& kind);
  /// Returns the targets of the devices of a kind, or null if its driver is not open.
  const Result<std::vector<Target>>* opened(const std::string& kind) const;
  /// Returns the reason why CCCL algorithms are not called in this process; empty if they can be, or if there is no
  /// library. Searches the library once.
  std::string uncallable_cccl_reason();
  /// Returns the drivers that exist, with their kinds.
  std::vector<std::pair<std::string, DriverBackend*>> all() const;

 private:
  std::unique_ptr<DriverBackend> make(const std::string& kind, const std::string& driver);
  /// Returns the CCCL library that the compiler chooses too.
  Result<CcclCandidate> choose_cccl();
  Result<CcclLoader::LibraryPaths> cccl_library_paths();

  const SessionOptions& options_;
  LazyComponents& components_;
  const EventEmitter& emitter_;
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<DriverBackend>> backends_ KILN_GUARDED_BY(mutex_);
  std::map<std::string, bool> present_ KILN_GUARDED_BY(mutex_);
  std::optional<std::string> uncallable_cccl_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
