// SPDX-License-Identifier: Apache-2.0
#include "session/driver_backend.hpp"

#include <algorithm>
#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "core/unit_access.hpp"

namespace kiln {

const std::string& driver_kind(const Unit& unit) {
  static const std::string cuda = "cuda";
  // The units of nvJitLink, nvcc and CCCL are CUDA units like those of NVRTC.
  const bool of_cuda = unit.kind() == "link" || unit.kind() == "command" || unit.kind() == "cccl";
  return of_cuda ? cuda : unit.kind();
}

ArtifactKey module_key(const Unit& unit, const ArtifactKey& key) {
  if (unit.served_by().empty()) return key;
  return {sha256(BinaryWriter().text("kiln module 1").digest(key.digest).digest(UnitAccess::identity(unit)).bytes())};
}

Result<std::vector<Target>> DriverBackend::list_targets() {
  auto devices = device_->devices();
  if (!devices) return std::move(devices).error();
  std::vector<Target> targets;
  for (const DeviceInfo& device : *devices) {
    if (std::find(targets.begin(), targets.end(), device.target) != targets.end()) continue;
    targets.push_back(device.target);
    if (device.is_cpu) cpu_targets_.push_back(device.target);
  }
  return targets;
}

const Result<std::vector<Target>>& DriverBackend::open() {
  once_.call([this] {
    targets_.emplace(list_targets());
    open_.store(true, std::memory_order_release);
  });
  return *targets_;
}

const Result<std::vector<Target>>* DriverBackend::opened() const {
  return open_.load(std::memory_order_acquire) ? &*targets_ : nullptr;
}

bool DriverBackend::is_cpu(const Target& target) const {
  return open_.load(std::memory_order_acquire) &&
         std::find(cpu_targets_.begin(), cpu_targets_.end(), target) != cpu_targets_.end();
}

std::shared_ptr<DriverBackend::ModuleSlot> DriverBackend::loaded(const ArtifactKey& key) {
  const MutexLock lock(mutex_);
  std::shared_ptr<ModuleSlot>& known = modules_[key];
  if (known == nullptr) known = std::make_shared<ModuleSlot>();
  return known;
}

Result<std::shared_ptr<Module>> DriverBackend::load(const Artifact& artifact) {
  for (const auto& loader : loaders_) {
    if (loader->form() == artifact.target.form) return loader->load(artifact);
  }
  return device_->load(artifact);
}

Result<std::shared_ptr<Module>> DriverBackend::module(const ArtifactKey& key, const Artifact& artifact,
                                                      bool* newly_loaded) {
  const std::shared_ptr<ModuleSlot> known = loaded(key);
  const MutexLock lock(known->mutex);
  if (known->module != nullptr) return known->module;
  const Hash128 bytes = xxh3_128({artifact.bytes.data(), artifact.bytes.size()});
  if (known->rejected == bytes) return make_error(Code::LoadRejected, "the driver rejected this artifact before");
  auto module = load(artifact);
  if (module) {
    known->module = *module;
    known->bytes = bytes;
  }
  if (newly_loaded != nullptr) *newly_loaded = module.has_value();
  return module;
}

std::shared_ptr<Module> DriverBackend::find(const ArtifactKey& key) {
  std::shared_ptr<ModuleSlot> known;
  {
    const MutexLock lock(mutex_);
    const auto at = modules_.find(key);
    if (at == modules_.end()) return nullptr;
    known = at->second;
  }
  const MutexLock lock(known->mutex);
  return known->module;
}

void DriverBackend::mark_rejected(const ArtifactKey& key) {
  const std::shared_ptr<ModuleSlot> known = loaded(key);
  const MutexLock lock(known->mutex);
  if (known->module == nullptr) return;
  known->module = nullptr;  // kernels of the module keep it alive
  known->rejected = known->bytes;
}

void DriverBackend::unload(const ArtifactKey& key) {
  std::shared_ptr<ModuleSlot> known;  // destroyed after the lock is released: unloading can take the driver some time
  const MutexLock lock(mutex_);
  const auto at = modules_.find(key);
  if (at == modules_.end()) return;
  known = std::move(at->second);
  modules_.erase(at);
}

}  // namespace kiln
