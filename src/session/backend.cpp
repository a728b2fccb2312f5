#include "session/backend.hpp"

#include <algorithm>
#include <utility>

namespace kiln {

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
  std::call_once(once_, [this] {
    targets_.emplace(list_targets());
    open_.store(true, std::memory_order_release);
  });
  return *targets_;
}

const Result<std::vector<Target>>* Backend::opened() const {
  return open_.load(std::memory_order_acquire) ? &*targets_ : nullptr;
}

Result<std::shared_ptr<Module>> Backend::module(const Key& key, const Artifact& artifact, bool* fresh) {
  std::shared_ptr<Loaded> loaded;
  {
    const MutexLock lock(mutex_);
    std::shared_ptr<Loaded>& known = modules_[key];
    if (known == nullptr) known = std::make_shared<Loaded>();
    loaded = known;
  }
  const MutexLock lock(loaded->mutex);
  if (loaded->module != nullptr) return loaded->module;
  auto module = device_->load(artifact);
  if (module) loaded->module = *module;
  if (fresh != nullptr) *fresh = module.ok();
  return module;
}

}  // namespace kiln
