// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <kiln/unit.hpp>

#include "backends/artifact_loader.hpp"
#include "backends/device.hpp"
#include "base/hash.hpp"
#include "base/mutex.hpp"
#include "base/once.hpp"

namespace kiln {

/// Returns the kind of driver that loads the compiled code of a unit: "cuda", "opencl".
const std::string& driver_kind(const Unit& unit);

/// Returns the key under which the code of a unit is loaded. Units with different `served_by` lists share no module,
/// because the code of one key can come from several namespaces.
ArtifactKey module_key(const Unit& unit, const ArtifactKey& key);

/// The driver for one kind of units and the modules loaded into it. The driver is opened when it is first needed.
/// Thread-safe.
class DriverBackend {
 public:
  /// `loaders` load artifacts of a form that the driver does not accept directly.
  explicit DriverBackend(std::unique_ptr<Device> device, std::vector<std::unique_ptr<ArtifactLoader>> loaders = {})
      : device_(std::move(device)), loaders_(std::move(loaders)) {}

  Device& device() { return *device_; }

  /// Opens the driver unless it is open, which can take a tenth of a second. Returns the targets of its devices, each
  /// once.
  const Result<std::vector<Target>>& open();
  /// Returns the same if the driver has been opened, otherwise null.
  const Result<std::vector<Target>>* opened() const;
  /// Returns true if the driver is open and has a device of this target that is a CPU.
  bool is_cpu(const Target& target) const;

  /// Returns the module of an artifact. It is loaded once per key; `newly_loaded` is set to true for the caller that
  /// loaded it.
  Result<std::shared_ptr<Module>> module(const ArtifactKey& key, const Artifact& artifact,
                                         bool* newly_loaded = nullptr);
  /// Returns the module of a key if it is loaded, otherwise null.
  std::shared_ptr<Module> find(const ArtifactKey& key);
  /// Marks the loaded code as rejected, because it turned out to be unusable at its first use. The same bytes are not
  /// loaded again under that key.
  void mark_rejected(const ArtifactKey& key);
  /// Removes the module. It is unloaded with its last kernel, and loaded again for the next caller.
  void unload(const ArtifactKey& key);

 private:
  struct ModuleSlot {
    Mutex mutex;
    std::shared_ptr<Module> module KILN_GUARDED_BY(mutex);
    Hash128 bytes KILN_GUARDED_BY(mutex);  // hash of the loaded bytes
    std::optional<Hash128> rejected KILN_GUARDED_BY(mutex);
  };
  std::shared_ptr<ModuleSlot> loaded(const ArtifactKey& key);
  Result<std::vector<Target>> list_targets();
  Result<std::shared_ptr<Module>> load(const Artifact& artifact);

  const std::unique_ptr<Device> device_;
  const std::vector<std::unique_ptr<ArtifactLoader>> loaders_;
  Once once_;
  std::optional<Result<std::vector<Target>>> targets_;  // constant once open_ is set
  std::vector<Target> cpu_targets_;                     // likewise
  std::atomic<bool> open_{false};
  Mutex mutex_;
  std::unordered_map<ArtifactKey, std::shared_ptr<ModuleSlot>> modules_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
