// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cuda_device.hpp"

#include <utility>

#include "backends/argument_checks.hpp"
#include "backends/cuda/cuda_module.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

using cuda::DriverResult;
using cuda::to_device_pointer;
using cuda::to_pointer;
using cuda::to_stream;

Result<DeviceInfo> describe(const CudaApi& api, cuda::DeviceNumber device) {
  char name[256] = {};
  DriverResult result = api->DeviceGetName(name, sizeof name - 1, device);
  if (result != DriverResult::Success) return api.failure("cuDeviceGetName", result);
  std::size_t memory = 0;
  result = api->DeviceTotalMem(&memory, device);
  if (result != DriverResult::Success) return api.failure("cuDeviceTotalMem", result);
  int major = 0;
  int minor = 0;
  int units = 0;
  int ratio = 0;
  for (const auto& [value, attribute] : {std::pair{&major, cuda::DeviceAttribute::CapabilityMajor},
                                         std::pair{&minor, cuda::DeviceAttribute::CapabilityMinor},
                                         std::pair{&units, cuda::DeviceAttribute::MultiprocessorCount},
                                         std::pair{&ratio, cuda::DeviceAttribute::SingleToDoubleRatio}}) {
    result = api->DeviceGetAttribute(value, attribute, device);
    if (result != DriverResult::Success) return api.failure("cuDeviceGetAttribute", result);
  }
  return DeviceInfo{name, Target::sm(major * 10 + minor), static_cast<unsigned>(units), memory,
                    static_cast<unsigned>(ratio)};
}

Status check_can_wait(const void* stream) {
  if (!cuda::is_legacy_stream(stream) && !cuda::is_per_thread_stream(stream)) return {};
  return make_error(Code::InvalidArgument,
                    "cannot wait for a default stream of CUDA: it can wait for the streams of other libraries; "
                    "use a stream of your own");
}

// Waits twice if the first wait fails: after an error the caller reuses its memory, so the copy must not be in
// progress.
Status wait_for_copy(const CudaApi& api, void* stream) {
  const DriverResult result = api->StreamSynchronize(to_stream(stream));
  if (result == DriverResult::Success) return {};
  api->StreamSynchronize(to_stream(stream));
  return api.failure("cuStreamSynchronize", result);
}

}  // namespace

CudaDevice::CudaDevice(Options options) : options_(std::move(options)) {}

CudaDevice::~CudaDevice() {
  for (const auto& [device, context] : primary_contexts_) (*api_)->DevicePrimaryCtxRelease(device);
}

Result<std::shared_ptr<const CudaApi>> CudaDevice::open() {
  if (api_ != nullptr) return api_;
  auto opened = CudaApi::open(options_.driver);
  if (opened) api_ = *opened;
  return opened;
}

Result<std::shared_ptr<const CudaApi>> CudaDevice::api() {
  const MutexLock lock(mutex_);
  return open();
}

Status CudaDevice::list() {
  const auto opened = open();
  if (!opened) return opened.error();
  if (!device_entries_.empty()) return {};
  const CudaApi& api = **opened;
  int count = 0;
  DriverResult result = api->DeviceGetCount(&count);
  if (result != DriverResult::Success) return api.failure("cuDeviceGetCount", result);
  if (count < 1) return api.failure("cuDeviceGetCount", DriverResult::NoDevice);
  std::vector<DeviceEntry> found(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    DeviceEntry& device = found[static_cast<std::size_t>(i)];
    result = api->DeviceGet(&device.number, i);
    if (result != DriverResult::Success) return api.failure("cuDeviceGet", result);
    Result<DeviceInfo> info = describe(api, device.number);
    if (!info) return std::move(info).error();
    device.info = *std::move(info);
  }
  device_entries_ = std::move(found);
  return {};
}

Result<std::vector<DeviceInfo>> CudaDevice::devices() {
  const MutexLock lock(mutex_);
  if (Status listed = list(); !listed) return std::move(listed).error();
  std::vector<DeviceInfo> infos;
  for (const DeviceEntry& device : device_entries_) infos.push_back(device.info);
  return infos;
}

Result<CurrentContext> CudaDevice::current_context() {
  const MutexLock lock(mutex_);
  if (Status listed = list(); !listed) return std::move(listed).error();
  const Result<unsigned long long> id = api_->context_id();
  if (!id) return id.error();
  cuda::DeviceNumber number = 0;
  const DriverResult result = (*api_)->CtxGetDevice(&number);
  if (result != DriverResult::Success) return api_->failure("cuCtxGetDevice", result);
  for (std::size_t i = 0; i < device_entries_.size(); ++i) {
    if (device_entries_[i].number == number) return CurrentContext{*id, i, device_entries_[i].info.target};
  }
  return make_error(Code::Unsupported, "the device of the current CUDA context is not in the driver's list");
}

Status CudaDevice::make_current(std::size_t device) {
  std::shared_ptr<const CudaApi> api;
  cuda::DeviceNumber number = 0;
  {
    const MutexLock lock(mutex_);
    if (Status listed = list(); !listed) return listed;
    if (device >= device_entries_.size()) {
      return make_error(Code::InvalidArgument, "CUDA device " + std::to_string(device) +
                                                   " does not exist; the number of devices is " +
                                                   std::to_string(device_entries_.size()) + ", and the first is 0");
    }
    api = api_;
    number = device_entries_[device].number;
  }
  const ScopedRelaxedCapture relaxed(*api);
  if (!relaxed.entered()) return relaxed.entered();
  const Result<cuda::Context> context = primary(*api, number);
  if (!context) return context.error();
  return api->check("cuCtxSetCurrent", (*api)->CtxSetCurrent(*context));
}

Status CudaDevice::ensure_current() {
  const auto opened = api();
  if (!opened) return opened.error();
  unsigned long long id = 0;
  const DriverResult result = (**opened)->CtxGetId(nullptr, &id);
  // A destroyed context is of no use to anyone: for example the primary one, which an earlier session released.
  const bool none = result == DriverResult::InvalidContext || result == DriverResult::ContextIsDestroyed;
  return none ? make_current(0) : (*opened)->check("cuCtxGetId", result);
}

Result<cuda::Context> CudaDevice::primary(const CudaApi& api, cuda::DeviceNumber device) {
  const MutexLock lock(primaries_mutex_);
  if (const auto found = primary_contexts_.find(device); found != primary_contexts_.end()) return found->second;
  cuda::Context context = nullptr;
  const DriverResult result = api->DevicePrimaryCtxRetain(&context, device);
  if (result != DriverResult::Success) return api.failure("cuDevicePrimaryCtxRetain", result);
  primary_contexts_.emplace(device, context);
  return context;
}

Result<std::shared_ptr<Module>> CudaDevice::load(const Artifact& artifact) {
  auto opened = api();
  if (!opened) return std::move(opened).error();
  auto library = CudaLibrary::load(*std::move(opened), artifact);
  if (!library) return std::move(library).error();
  return std::shared_ptr<Module>(std::make_shared<CudaModule>(*std::move(library)));
}

Result<void*> CudaDevice::create_stream() {
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  const ScopedRelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered().error();
  cuda::Stream stream = nullptr;
  const DriverResult result = api->StreamCreate(&stream, cuda::kStreamNonBlocking);
  if (result != DriverResult::Success) return api.failure("cuStreamCreate", result);
  return static_cast<void*>(stream);
}

Status CudaDevice::release_stream(void* stream) {
  if (stream == nullptr) return make_error(Code::InvalidArgument, "cannot release a null stream");
  const auto opened = api();
  if (!opened) return opened.error();
  const ScopedRelaxedCapture relaxed(**opened);
  if (!relaxed.entered()) return relaxed.entered();
  return (*opened)->check("cuStreamDestroy", (**opened)->StreamDestroy(to_stream(stream)));
}

Result<bool> CudaDevice::capturing(void* stream) {
  const auto opened = api();
  if (!opened) return opened.error();
  return (*opened)->is_capturing(stream);
}

Result<void*> CudaDevice::allocate(std::size_t bytes, void* stream) {
  if (Status possible = check_allocation(bytes); !possible) return std::move(possible).error();
  const Result<bool> given = has_allocator(options_.allocator);
  if (!given) return given.error();
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  if (Status idle = api.check_not_capturing("allocate memory", stream); !idle) return std::move(idle).error();
  if (*given) return allocate_with(options_.allocator, bytes, stream);
  const ScopedRelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered().error();
  cuda::DevicePointer memory = 0;
  const DriverResult result = api->MemAllocAsync(&memory, bytes, to_stream(stream));
  if (result == DriverResult::OutOfMemory) {
    return out_of_memory(bytes, api.failure("cuMemAllocAsync", result).message);
  }
  if (result != DriverResult::Success) return api.failure("cuMemAllocAsync", result);
  return to_pointer(memory);
}

Status CudaDevice::release(void* memory, std::size_t bytes, void* stream) {
  if (memory == nullptr) return make_error(Code::InvalidArgument, "cannot release null memory");
  const Result<bool> given = has_allocator(options_.allocator);
  if (!given) return given.error();
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  if (Status idle = api.check_not_capturing("release memory", stream); !idle) return idle;
  if (*given) {
    options_.allocator.release(memory, bytes, StreamRef::from_native(stream));
    return {};
  }
  const ScopedRelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered();
  return api.check("cuMemFreeAsync", api->MemFreeAsync(to_device_pointer(memory), to_stream(stream)));
}

Status CudaDevice::copy(const char* what, std::size_t bytes, void* stream,
                        const std::function<DriverResult(const CudaApi&)>& enqueue) {
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  if (Status idle = api.check_not_capturing("wait for a copy", stream); !idle) return idle;
  if (Status own = check_can_wait(stream); !own) return own;
  if (bytes == 0) return {};
  const ScopedRelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered();
  const DriverResult result = enqueue(api);
  if (result != DriverResult::Success) return api.failure(what, result);
  return wait_for_copy(api, stream);
}

Status CudaDevice::copy_to_device(void* to, const void* from, std::size_t bytes, void* stream) {
  return copy("cuMemcpyHtoDAsync", bytes, stream, [&](const CudaApi& api) {
    return api->MemcpyHtoDAsync(to_device_pointer(to), from, bytes, to_stream(stream));
  });
}

Status CudaDevice::copy_to_host(void* to, void* from, std::size_t bytes, void* stream) {
  return copy("cuMemcpyDtoHAsync", bytes, stream, [&](const CudaApi& api) {
    return api->MemcpyDtoHAsync(to, to_device_pointer(from), bytes, to_stream(stream));
  });
}

std::optional<bool> CudaDevice::is_pinned(const void* host) {
  const auto opened = api();
  if (!opened) return std::nullopt;
  cuda::MemoryType type{};
  const DriverResult result = (**opened)->PointerGetAttribute(&type, cuda::PointerAttribute::MemoryType,
                                                              to_device_pointer(const_cast<void*>(host)));
  if (result == DriverResult::InvalidValue) return false;
  if (result != DriverResult::Success || type != cuda::MemoryType::Host) return std::nullopt;
  return true;
}

Status CudaDevice::synchronize(void* stream) {
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  if (Status idle = api.check_not_capturing("synchronize the stream", stream); !idle) return idle;
  if (Status own = check_can_wait(stream); !own) return own;
  const ScopedRelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered();
  return api.check("cuStreamSynchronize", api->StreamSynchronize(to_stream(stream)));
}

}  // namespace kiln
