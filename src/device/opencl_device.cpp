#include "device/opencl_device.hpp"

#include <utility>

#include "base/error.hpp"
#include "device/checks.hpp"
#include "device/opencl_module.hpp"

namespace kiln {
namespace {

cl_command_queue queue_of(void* stream) { return static_cast<cl_command_queue>(stream); }

Status judged(const char* what, cl_int error) {
  if (error == CL_SUCCESS) return {};
  return opencl_failure(what, error);
}

}  // namespace

OpenClDevice::OpenClDevice(Options options) : options_(std::move(options)) {}

Result<OpenClDevice::Opened*> OpenClDevice::open() {
  if (opened_ != nullptr) return opened_.get();
  if ((options_.context == nullptr) != (options_.device == nullptr)) {
    return failure(Code::InvalidArgument, "an OpenCL context and a device of it are given together, or neither");
  }
  auto library = OpenClLibrary::open();
  if (!library) return std::move(library).error();
  auto opened = std::make_unique<Opened>();
  opened->library = *library;
  if (options_.context == nullptr) {
    opened->devices = (*library)->devices();
    opened->places.resize(opened->devices.size());
  } else {
    opened->devices = {(*library)->describe(options_.device)};
    opened->places = {
        OpenClPlace::of(*library, options_.context, options_.device, opened->devices.front().info.target)};
  }
  opened_ = std::move(opened);
  return opened_.get();
}

Result<std::shared_ptr<const OpenClPlace>> OpenClDevice::place_of(std::size_t device) {
  if (opened_->places[device] != nullptr) return opened_->places[device];
  // Devices of one target share a context, so that what is loaded once serves each of them.
  const Target& target = opened_->devices[device].info.target;
  std::vector<cl_device_id> ids;
  for (const OpenClLibrary::Device& other : opened_->devices) {
    if (other.info.target == target) ids.push_back(other.id);
  }
  auto made = OpenClPlace::make(opened_->library, std::move(ids), target);
  if (!made) return std::move(made).error();
  for (std::size_t i = 0; i < opened_->devices.size(); ++i) {
    if (opened_->devices[i].info.target == target) opened_->places[i] = *made;
  }
  return *made;
}

Result<std::shared_ptr<const OpenClPlace>> OpenClDevice::here(cl_device_id* device) {
  const MutexLock lock(mutex_);
  const Result<Opened*> opened = open();
  if (!opened) return opened.error();
  if (device != nullptr) *device = (*opened)->devices[(*opened)->chosen].id;
  return place_of((*opened)->chosen);
}

Result<std::shared_ptr<const OpenClPlace>> OpenClDevice::here_with(void* queue) {
  if (queue == nullptr) return failure(Code::InvalidArgument, kNoDefaultStream);
  return here();
}

Result<std::vector<DeviceInfo>> OpenClDevice::devices() {
  const MutexLock lock(mutex_);
  const Result<Opened*> opened = open();
  if (!opened) return opened.error();
  std::vector<DeviceInfo> infos;
  const OpenClFunctions& cl = (*opened)->library->functions();
  for (const OpenClLibrary::Device& device : (*opened)->devices) {
    cl_ulong memory = 0;
    cl.GetDeviceInfo(device.id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, nullptr);
    cl_device_fp_config doubles = 0;
    cl.GetDeviceInfo(device.id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, nullptr);
    // OpenCL does not say how fast they are; a processor does two floats in the time of one double.
    const unsigned ratio = doubles != 0 && !device.info.gpu ? 2 : 0;
    infos.push_back({device.info.device, device.info.target, device.info.compute_units, memory, ratio});
  }
  return infos;
}

Result<Place> OpenClDevice::current() {
  const MutexLock lock(mutex_);
  const Result<Opened*> opened = open();
  if (!opened) return opened.error();
  const auto place = place_of((*opened)->chosen);
  if (!place) return place.error();
  return Place{(*place)->id(), (*opened)->chosen, (*place)->target()};
}

Status OpenClDevice::make_current(std::size_t device) {
  const MutexLock lock(mutex_);
  const Result<Opened*> opened = open();
  if (!opened) return opened.error();
  const std::size_t count = (*opened)->devices.size();
  if (device >= count) {
    return failure(Code::InvalidArgument, "there is no OpenCL device " + std::to_string(device) + ", only " +
                                              std::to_string(count) + " counted from 0");
  }
  const auto place = place_of(device);
  if (!place) return place.error();
  (*opened)->chosen = device;
  return {};
}

Result<std::shared_ptr<Module>> OpenClDevice::load(const Artifact& artifact) {
  std::shared_ptr<const OpenClPlace> place;
  {
    const MutexLock lock(mutex_);
    const Result<Opened*> opened = open();
    if (!opened) return opened.error();
    for (std::size_t i = 0; i < (*opened)->devices.size() && place == nullptr; ++i) {
      if (!((*opened)->devices[i].info.target == artifact.target)) continue;
      auto found = place_of(i);
      if (!found) return std::move(found).error();
      place = *found;
    }
  }
  if (place == nullptr) {
    return failure(Code::LoadRefused, "no OpenCL device here takes what was built for " + artifact.target.name());
  }
  return OpenClModule::load(std::move(place), artifact);
}

Result<void*> OpenClDevice::make_stream() {
  cl_device_id device = nullptr;
  const auto place = here(&device);
  if (!place) return place.error();
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = (*place)->cl().CreateCommandQueue((*place)->context(), device, 0, &error);
  if (queue == nullptr) return opencl_failure("clCreateCommandQueue", error);
  return static_cast<void*>(queue);
}

Status OpenClDevice::release_stream(void* stream) {
  const auto place = here_with(stream);
  if (!place) return place.error();
  // What was launched ends before the queue does. PoCL makes machine code of a kernel when it is launched, in a thread
  // of its own, and a program that ends meanwhile takes LLVM's tables away from it.
  const Status finished = judged("clFinish", (*place)->cl().Finish(queue_of(stream)));
  const Status released = judged("clReleaseCommandQueue", (*place)->cl().ReleaseCommandQueue(queue_of(stream)));
  return finished ? released : finished;
}

Result<void*> OpenClDevice::allocate(std::size_t bytes, void* stream) {
  if (Status possible = check_allocation(bytes); !possible) return std::move(possible).error();
  const Result<bool> given = is_given(options_.allocator);
  if (!given) return given.error();
  if (*given) return allocate_from(options_.allocator, bytes, stream);
  const auto place = here();
  if (!place) return place.error();
  cl_int error = CL_SUCCESS;
  cl_mem memory = (*place)->cl().CreateBuffer((*place)->context(), CL_MEM_READ_WRITE, bytes, nullptr, &error);
  // A size that is not zero is invalid only where it is more than the device has.
  if (memory == nullptr) return out_of_memory(bytes, "clCreateBuffer failed with " + opencl_error_text(error));
  return static_cast<void*>(memory);
}

Status OpenClDevice::release(void* memory, std::size_t bytes, void* stream) {
  if (memory == nullptr) return failure(Code::InvalidArgument, "there is no memory to release");
  const Result<bool> given = is_given(options_.allocator);
  if (!given) return given.error();
  if (*given) {
    options_.allocator.release(memory, bytes, stream);
    return {};
  }
  const auto place = here();
  if (!place) return place.error();
  // Commands that were enqueued before hold the buffer until they have ended.
  return judged("clReleaseMemObject", (*place)->cl().ReleaseMemObject(static_cast<cl_mem>(memory)));
}

Status OpenClDevice::copy_in(void* to, const void* from, std::size_t bytes, void* stream) {
  const auto place = here_with(stream);
  if (!place) return place.error();
  if (bytes == 0) return {};
  return judged("clEnqueueWriteBuffer",
                (*place)->cl().EnqueueWriteBuffer(queue_of(stream), static_cast<cl_mem>(to), CL_TRUE, 0, bytes, from, 0,
                                                  nullptr, nullptr));
}

Status OpenClDevice::copy_out(void* to, void* from, std::size_t bytes, void* stream) {
  const auto place = here_with(stream);
  if (!place) return place.error();
  if (bytes == 0) return {};
  return judged("clEnqueueReadBuffer", (*place)->cl().EnqueueReadBuffer(queue_of(stream), static_cast<cl_mem>(from),
                                                                        CL_TRUE, 0, bytes, to, 0, nullptr, nullptr));
}

Status OpenClDevice::synchronise(void* stream) {
  const auto place = here_with(stream);
  if (!place) return place.error();
  return judged("clFinish", (*place)->cl().Finish(queue_of(stream)));
}

}  // namespace kiln
