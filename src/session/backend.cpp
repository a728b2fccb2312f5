#include "session/backend.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace kiln {

const std::string& driver_kind(const Unit& unit) {
  static const std::string cuda = "cuda";
  // Those of nvJitLink, of nvcc and of CCCL are CUDA's as much as NVRTC's.
  const bool of_cuda = unit.kind() == "link" || unit.kind() == "command" || unit.kind() == "cccl";
  return of_cuda ? cuda : unit.kind();
}

Result<std::vector<Target>> Backend::list_targets() {
  auto devices = device_->devices();
  if (!devices) return std::move(devices).error();
  std::vector<Target> targets;
  for (const DeviceInfo& device : *devices) {
    if (std::find(targets.begin(), targets.end(), device.target) == targets.end()) targets.push_back(device.target);
  }
  return targets;
}

const Result<std::vector<Target>>& Backend::open() {
  once_.call([this] {
    targets_.emplace(list_targets());
    open_.store(true, std::memory_order_release);
  });
  return *targets_;
}

const Result<std::vector<Target>>* Backend::opened() const {
  return open_.load(std::memory_order_acquire) ? &*targets_ : nullptr;
}

std::shared_ptr<Backend::Loaded> Backend::loaded(const Key& key) {
  const MutexLock lock(mutex_);
  std::shared_ptr<Loaded>& known = modules_[key];
  if (known == nullptr) known = std::make_shared<Loaded>();
  return known;
}

Result<std::shared_ptr<Module>> Backend::load(const Artifact& artifact) {
  for (const auto& loader : loaders_) {
    if (loader->form() == artifact.target.form) return loader->load(artifact);
  }
  return device_->load(artifact);
}

Result<std::shared_ptr<Module>> Backend::module(const Key& key, const Artifact& artifact, bool* fresh) {
  const std::shared_ptr<Loaded> known = loaded(key);
  const MutexLock lock(known->mutex);
  if (known->module != nullptr) return known->module;
  if (!known->refused.empty() && known->refused == artifact.bytes) {
    return failure(Code::LoadRefused, "the driver refused this artifact before");
  }
  auto module = load(artifact);
  if (module) known->module = *module;
  if (fresh != nullptr) *fresh = module.ok();
  return module;
}

void Backend::refuse(const Key& key, const Bytes& bytes) {
  const std::shared_ptr<Loaded> known = loaded(key);
  const MutexLock lock(known->mutex);
  known->module = nullptr;  // whoever holds a kernel of it keeps it
  known->refused = bytes;
}

}  // namespace kiln
