#include "device/cuda_device.hpp"

#include <utility>

#include "base/error.hpp"
#include "device/checks.hpp"
#include "device/cuda_module.hpp"

namespace kiln {
namespace {

using cuda::DriverResult;
using cuda::memory_at;
using cuda::pointer_of;
using cuda::stream_of;

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

// After an error the caller takes his memory for his own again, so a copy must not be left under way for one failure.
Status wait_for_copy(const CudaApi& api, void* stream) {
  const DriverResult result = api->StreamSynchronize(stream_of(stream));
  if (result == DriverResult::Success) return {};
  api->StreamSynchronize(stream_of(stream));
  return api.failure("cuStreamSynchronize", result);
}

}  // namespace

CudaDevice::CudaDevice(Options options) : options_(std::move(options)) {}

CudaDevice::~CudaDevice() {
  for (const auto& [device, context] : primaries_) (*api_)->DevicePrimaryCtxRelease(device);
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
  if (!known_.empty()) return {};
  const CudaApi& api = **opened;
  int count = 0;
  DriverResult result = api->DeviceGetCount(&count);
  if (result != DriverResult::Success) return api.failure("cuDeviceGetCount", result);
  if (count < 1) return api.failure("cuDeviceGetCount", DriverResult::NoDevice);
  std::vector<Known> found(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    Known& device = found[static_cast<std::size_t>(i)];
    result = api->DeviceGet(&device.number, i);
    if (result != DriverResult::Success) return api.failure("cuDeviceGet", result);
    Result<DeviceInfo> info = describe(api, device.number);
    if (!info) return std::move(info).error();
    device.info = *std::move(info);
  }
  known_ = std::move(found);
  return {};
}

Result<std::vector<DeviceInfo>> CudaDevice::devices() {
  const MutexLock lock(mutex_);
  if (Status listed = list(); !listed) return std::move(listed).error();
  std::vector<DeviceInfo> infos;
  for (const Known& device : known_) infos.push_back(device.info);
  return infos;
}

Result<Place> CudaDevice::current() {
  const MutexLock lock(mutex_);
  if (Status listed = list(); !listed) return std::move(listed).error();
  const Result<unsigned long long> id = api_->context_id();
  if (!id) return id.error();
  cuda::DeviceNumber number = 0;
  const DriverResult result = (*api_)->CtxGetDevice(&number);
  if (result != DriverResult::Success) return api_->failure("cuCtxGetDevice", result);
  for (std::size_t i = 0; i < known_.size(); ++i) {
    if (known_[i].number == number) return Place{*id, i, known_[i].info.target};
  }
  return failure(Code::Unsupported, "the current CUDA context is on a device that the driver does not list");
}

Status CudaDevice::make_current(std::size_t device) {
  std::shared_ptr<const CudaApi> api;
  cuda::DeviceNumber number = 0;
  {
    const MutexLock lock(mutex_);
    if (Status listed = list(); !listed) return listed;
    if (device >= known_.size()) {
      return failure(Code::InvalidArgument, "there is no CUDA device " + std::to_string(device) + ", only " +
                                                std::to_string(known_.size()) + " counted from 0");
    }
    api = api_;
    number = known_[device].number;
  }
  const RelaxedCapture relaxed(*api);
  if (!relaxed.entered()) return relaxed.entered();
  const Result<cuda::Context> context = primary(*api, number);
  if (!context) return context.error();
  return api->judge("cuCtxSetCurrent", (*api)->CtxSetCurrent(*context));
}

Result<cuda::Context> CudaDevice::primary(const CudaApi& api, cuda::DeviceNumber device) {
  const MutexLock lock(primaries_mutex_);
  if (const auto found = primaries_.find(device); found != primaries_.end()) return found->second;
  cuda::Context context = nullptr;
  const DriverResult result = api->DevicePrimaryCtxRetain(&context, device);
  if (result != DriverResult::Success) return api.failure("cuDevicePrimaryCtxRetain", result);
  primaries_.emplace(device, context);
  return context;
}

Result<std::shared_ptr<Module>> CudaDevice::load(const Artifact& artifact) {
  auto opened = api();
  if (!opened) return std::move(opened).error();
  auto library = CudaLibrary::load(*std::move(opened), artifact);
  if (!library) return std::move(library).error();
  return std::shared_ptr<Module>(std::make_shared<CudaModule>(*std::move(library)));
}

Result<void*> CudaDevice::make_stream() {
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  const RelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered().error();
  cuda::Stream stream = nullptr;
  const DriverResult result = api->StreamCreate(&stream, cuda::kStreamNonBlocking);
  if (result != DriverResult::Success) return api.failure("cuStreamCreate", result);
  return static_cast<void*>(stream);
}

Status CudaDevice::release_stream(void* stream) {
  if (stream == nullptr) return failure(Code::InvalidArgument, "there is no stream to release");
  const auto opened = api();
  if (!opened) return opened.error();
  const RelaxedCapture relaxed(**opened);
  if (!relaxed.entered()) return relaxed.entered();
  return (*opened)->judge("cuStreamDestroy", (**opened)->StreamDestroy(stream_of(stream)));
}

Result<bool> CudaDevice::capturing(void* stream) {
  const auto opened = api();
  if (!opened) return opened.error();
  return (*opened)->capturing(stream);
}

Result<void*> CudaDevice::allocate(std::size_t bytes, void* stream) {
  if (Status possible = check_allocation(bytes); !possible) return std::move(possible).error();
  const Result<bool> given = is_given(options_.allocator);
  if (!given) return given.error();
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  if (Status idle = api.refuse_capturing("allocate memory", stream); !idle) return std::move(idle).error();
  if (*given) return allocate_from(options_.allocator, bytes, stream);
  const RelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered().error();
  cuda::DevicePointer memory = 0;
  const DriverResult result = api->MemAllocAsync(&memory, bytes, stream_of(stream));
  if (result == DriverResult::OutOfMemory) {
    return out_of_memory(bytes, api.failure("cuMemAllocAsync", result).message);
  }
  if (result != DriverResult::Success) return api.failure("cuMemAllocAsync", result);
  return memory_at(memory);
}

Status CudaDevice::release(void* memory, std::size_t bytes, void* stream) {
  if (memory == nullptr) return failure(Code::InvalidArgument, "there is no memory to release");
  const Result<bool> given = is_given(options_.allocator);
  if (!given) return given.error();
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  if (Status idle = api.refuse_capturing("release memory", stream); !idle) return idle;
  if (*given) {
    options_.allocator.release(memory, bytes, stream);
    return {};
  }
  const RelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered();
  return api.judge("cuMemFreeAsync", api->MemFreeAsync(pointer_of(memory), stream_of(stream)));
}

Status CudaDevice::copy(const char* what, std::size_t bytes, void* stream,
                        const std::function<DriverResult(const CudaApi&)>& enqueue) {
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  if (Status idle = api.refuse_capturing("wait for a copy", stream); !idle) return idle;
  if (bytes == 0) return {};
  const RelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered();
  const DriverResult result = enqueue(api);
  if (result != DriverResult::Success) return api.failure(what, result);
  return wait_for_copy(api, stream);
}

Status CudaDevice::copy_in(void* to, const void* from, std::size_t bytes, void* stream) {
  return copy("cuMemcpyHtoDAsync", bytes, stream,
              [&](const CudaApi& api) { return api->MemcpyHtoDAsync(pointer_of(to), from, bytes, stream_of(stream)); });
}

Status CudaDevice::copy_out(void* to, void* from, std::size_t bytes, void* stream) {
  return copy("cuMemcpyDtoHAsync", bytes, stream,
              [&](const CudaApi& api) { return api->MemcpyDtoHAsync(to, pointer_of(from), bytes, stream_of(stream)); });
}

Status CudaDevice::synchronise(void* stream) {
  const auto opened = api();
  if (!opened) return opened.error();
  const CudaApi& api = **opened;
  if (Status idle = api.refuse_capturing("wait for it", stream); !idle) return idle;
  const RelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered();
  return api.judge("cuStreamSynchronize", api->StreamSynchronize(stream_of(stream)));
}

}  // namespace kiln
