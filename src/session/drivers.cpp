// SPDX-License-Identifier: Apache-2.0
#include "session/drivers.hpp"

#include <algorithm>
#include <utility>

#include "backends/cuda/cuda_device.hpp"
#include "backends/cuda/nvrtc_library.hpp"
#include "backends/factory/backend_table.hpp"
#include "backends/traced_device.hpp"
#include "base/process/environment.hpp"
#include "session/device_presence.hpp"

namespace kiln {

bool is_set(const SessionOptions& options, const char* setting, const char* variable) {
  const auto value = environment_variable(variable);
  return (value && !value->empty()) || options.settings.count(setting) != 0;
}

bool Drivers::has_device(const std::string& kind) {
  const MutexLock lock(mutex_);
  const auto known = present_.find(kind);
  if (known != present_.end()) return known->second;
  const BackendFactory* const backend = find_backend(kind);
  const bool present = backend != nullptr
                           ? backend->is_device_present(options_)
                           : kind == "cuda" && (is_set(options_, "driver", "KILN_DRIVER") || is_cuda_device_present());
  present_[kind] = present;
  if (!present) emitter_.emit(Event::Kind::NoDevice, kind, "there is no device for units of kind " + kind);
  return present;
}

bool Drivers::has_only_cpu_devices(const std::string& kind) const {
  if (const Result<std::vector<Target>>* const targets = opened(kind)) {
    const MutexLock lock(mutex_);
    const DriverBackend& driver = *backends_.at(kind);
    return *targets && std::all_of((*targets)->begin(), (*targets)->end(),
                                   [&](const Target& target) { return driver.is_cpu(target); });
  }
  const BackendFactory* const backend = find_backend(kind);
  return backend != nullptr && backend->has_only_cpu_devices(options_);
}

DriverBackend* Drivers::get(const std::string& kind) {
  std::string driver;
  if (kind == "cuda") driver = components_.get().config().driver;
  const MutexLock lock(mutex_);
  std::unique_ptr<DriverBackend>& backend = backends_[kind];
  if (backend == nullptr) backend = make(kind, driver);
  return backend.get();
}

std::unique_ptr<DriverBackend> Drivers::make(const std::string& kind, const std::string& driver) {
  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<ArtifactLoader>> loaders;
  const bool meant = !options_.allocator.backend || to_string(*options_.allocator.backend) == kind;
  const Allocator allocator = meant ? options_.allocator : Allocator{};
  if (kind == "cuda") {
    device = std::make_unique<CudaDevice>(CudaDevice::Options{driver, allocator});
    loaders.push_back(std::make_unique<CcclLoader>(driver, [this] { return cccl_library_paths(); }));
  } else if (const BackendFactory* const backend = find_backend(kind)) {
    device = backend->make_device(options_, allocator);
  }
  if (device == nullptr) return nullptr;
  if (emitter_.has_listeners()) device = std::make_unique<TracedDevice>(std::move(device), emitter_);
  return std::make_unique<DriverBackend>(std::move(device), std::move(loaders));
}

Result<CcclCandidate> Drivers::choose_cccl() {
  const Config& config = components_.get().config();
  return kiln::choose_cccl(config.cccl, nvrtc_major(config.nvrtc));
}

// Returns the CCCL library and the compilers that it was linked with: those that kiln's CCCL compiler found, or the
// system's libraries of these names if that compiler is not available.
Result<CcclLoader::LibraryPaths> Drivers::cccl_library_paths() {
  const auto compiler = components_.get().compiler(Unit::of_kind("cccl", "", ""), Target{"sm_80", Form::Cccl});
  std::optional<CompilerIdentity> found;
  if (compiler) {
    if (auto identity = (*compiler)->identity({})) found = std::move(*identity);
  }
  auto library = found ? kiln::choose_cccl(found->path) : choose_cccl();
  if (!library) return std::move(library).error();
  CcclLoader::LibraryPaths home{std::move(*library), found ? std::move(found->libraries) : std::vector<std::string>()};
  // Excludes the stub of the driver, which is for compiling only: the real driver is open.
  std::erase_if(home.requirements, [](const std::string& path) {
    return path.compare(path.rfind('/') + 1, std::string_view("libcuda.so").size(), "libcuda.so") == 0;
  });
  return home;
}

std::string Drivers::uncallable_cccl_reason() {
  {
    const MutexLock lock(mutex_);
    if (uncallable_cccl_) return *uncallable_cccl_;
  }
  // Without the lock, because the search reads files. A missing library is remembered like a callable one: it prevents
  // the compile, and CcclLoader checks a library that appears later.
  const auto library = choose_cccl();
  std::string reason = library ? library->uncallable_reason() : std::string();
  const MutexLock lock(mutex_);
  if (!uncallable_cccl_) uncallable_cccl_ = std::move(reason);
  return *uncallable_cccl_;
}

const Result<std::vector<Target>>* Drivers::opened(const std::string& kind) const {
  const MutexLock lock(mutex_);
  const auto known = backends_.find(kind);
  return known != backends_.end() && known->second != nullptr ? known->second->opened() : nullptr;
}

std::vector<std::pair<std::string, DriverBackend*>> Drivers::all() const {
  std::vector<std::pair<std::string, DriverBackend*>> drivers;
  const MutexLock lock(mutex_);
  for (const auto& [kind, driver] : backends_) {
    if (driver != nullptr) drivers.emplace_back(kind, driver.get());
  }
  return drivers;
}

}  // namespace kiln
