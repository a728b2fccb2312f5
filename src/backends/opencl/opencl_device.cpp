// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_device.hpp"

#include <utility>

#include "backends/argument_checks.hpp"
#include "backends/opencl/opencl_module.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

cl_command_queue queue_of(void* stream) { return static_cast<cl_command_queue>(stream); }

Status verified(const char* what, cl_int error) {
  if (error == CL_SUCCESS) return {};
  return opencl_failure(what, error);
}

}  // namespace

OpenClDevice::OpenClDevice(Options options) : options_(std::move(options)) {}

Result<OpenClDevice::DriverState*> OpenClDevice::open() {
  if (opened_ != nullptr) return opened_.get();
  if ((options_.context == nullptr) != (options_.device == nullptr)) {
    return make_error(Code::InvalidArgument, "an OpenCL context and its device must be set together");
  }
  auto library = OpenClLibrary::open();
  if (!library) return std::move(library).error();
  auto opened = std::make_unique<DriverState>();
  opened->library = *library;
  if (options_.context == nullptr) {
    opened->devices = (*library)->devices();
    opened->places.resize(opened->devices.size());
  } else {
    opened->devices = {(*library)->describe(options_.device)};
    opened->places = {
        OpenClContextState::of(*library, options_.context, options_.device, opened->devices.front().info.target)};
  }
  opened_ = std::move(opened);
  return opened_.get();
}

Result<std::shared_ptr<const OpenClContextState>> OpenClDevice::context_of(std::size_t device) {
  if (opened_->places[device] != nullptr) return opened_->places[device];
  // Devices of one target share a context, so that a program loaded once serves all of them.
  const Target& target = opened_->devices[device].info.target;
  std::vector<cl_device_id> ids;
  for (const OpenClLibrary::Device& other : opened_->devices) {
    if (other.info.target == target) ids.push_back(other.id);
  }
  auto made = OpenClContextState::make(opened_->library, std::move(ids), target);
  if (!made) return std::move(made).error();
  for (std::size_t i = 0; i < opened_->devices.size(); ++i) {
    if (opened_->devices[i].info.target == target) opened_->places[i] = *made;
  }
  return *made;
}

Result<std::shared_ptr<const OpenClContextState>> OpenClDevice::current(cl_device_id* device) {
  const MutexLock lock(mutex_);
  const Result<DriverState*> opened = open();
  if (!opened) return opened.error();
  if (device != nullptr) *device = (*opened)->devices[(*opened)->chosen].id;
  return context_of((*opened)->chosen);
}

Result<std::shared_ptr<const OpenClContextState>> OpenClDevice::current_for_queue(void* queue) {
  if (!is_queue(queue)) return make_error(Code::InvalidArgument, kNoDefaultStream);
  return current();
}

Result<std::vector<DeviceInfo>> OpenClDevice::devices() {
  const MutexLock lock(mutex_);
  const Result<DriverState*> opened = open();
  if (!opened) return opened.error();
  std::vector<DeviceInfo> infos;
  const OpenClFunctions& cl = (*opened)->library->functions();
  for (const OpenClLibrary::Device& device : (*opened)->devices) {
    cl_ulong memory = 0;
    cl.GetDeviceInfo(device.id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof memory, &memory, nullptr);
    cl_device_fp_config doubles = 0;
    cl.GetDeviceInfo(device.id, CL_DEVICE_DOUBLE_FP_CONFIG, sizeof doubles, &doubles, nullptr);
    // OpenCL does not report the throughput of doubles. A CPU computes two floats in the time of one double.
    const unsigned ratio = doubles != 0 && !device.info.gpu ? 2 : 0;
    infos.push_back(
        {device.info.device, device.info.target, device.info.compute_units, memory, ratio, device.info.cpu});
  }
  return infos;
}

Result<CurrentContext> OpenClDevice::current_context() {
  const MutexLock lock(mutex_);
  const Result<DriverState*> opened = open();
  if (!opened) return opened.error();
  const auto place = context_of((*opened)->chosen);
  if (!place) return place.error();
  return CurrentContext{(*place)->id(), (*opened)->chosen, (*place)->target()};
}

Status OpenClDevice::make_current(std::size_t device) {
  const MutexLock lock(mutex_);
  const Result<DriverState*> opened = open();
  if (!opened) return opened.error();
  const std::size_t count = (*opened)->devices.size();
  if (device >= count) {
    return make_error(Code::InvalidArgument, "OpenCL device " + std::to_string(device) +
                                                 " does not exist; the number of devices is " + std::to_string(count) +
                                                 ", and the first is 0");
  }
  const auto place = context_of(device);
  if (!place) return place.error();
  (*opened)->chosen = device;
  return {};
}

Result<std::shared_ptr<Module>> OpenClDevice::load(const Artifact& artifact) {
  std::shared_ptr<const OpenClContextState> place;
  {
    const MutexLock lock(mutex_);
    const Result<DriverState*> opened = open();
    if (!opened) return opened.error();
    for (std::size_t i = 0; i < (*opened)->devices.size() && place == nullptr; ++i) {
      if (!((*opened)->devices[i].info.target == artifact.target)) continue;
      auto found = context_of(i);
      if (!found) return std::move(found).error();
      place = *found;
    }
  }
  if (place == nullptr) {
    return make_error(Code::LoadRejected,
                      "no OpenCL device of this machine can load a binary for " + artifact.target.name());
  }
  return OpenClModule::load(std::move(place), artifact);
}

Result<void*> OpenClDevice::create_stream() {
  cl_device_id device = nullptr;
  const auto place = current(&device);
  if (!place) return place.error();
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = (*place)->cl().CreateCommandQueue((*place)->context(), device, 0, &error);
  if (queue == nullptr) return opencl_failure("clCreateCommandQueue", error);
  return static_cast<void*>(queue);
}

Status OpenClDevice::release_stream(void* stream) {
  const auto place = current_for_queue(stream);
  if (!place) return place.error();
  // Completes all launched work before releasing the queue. PoCL generates the machine code of a kernel at its launch,
  // in its own thread. A program that exits during this time destroys LLVM's tables.
  const Status finished = verified("clFinish", (*place)->cl().Finish(queue_of(stream)));
  const Status released = verified("clReleaseCommandQueue", (*place)->cl().ReleaseCommandQueue(queue_of(stream)));
  return finished ? released : finished;
}

Result<void*> OpenClDevice::allocate(std::size_t bytes, void* stream) {
  if (Status possible = check_allocation(bytes); !possible) return std::move(possible).error();
  const Result<bool> given = has_allocator(options_.allocator);
  if (!given) return given.error();
  if (*given) return allocate_with(options_.allocator, bytes, stream);
  const auto place = current();
  if (!place) return place.error();
  cl_int error = CL_SUCCESS;
  cl_mem memory = (*place)->cl().CreateBuffer((*place)->context(), CL_MEM_READ_WRITE, bytes, nullptr, &error);
  // A nonzero size is invalid only if it exceeds the device's memory.
  if (memory == nullptr) return out_of_memory(bytes, "clCreateBuffer failed with " + opencl_error_text(error));
  return static_cast<void*>(memory);
}

Status OpenClDevice::release(void* memory, std::size_t bytes, void* stream) {
  if (memory == nullptr) return make_error(Code::InvalidArgument, "cannot release null memory");
  const Result<bool> given = has_allocator(options_.allocator);
  if (!given) return given.error();
  if (*given) {
    options_.allocator.release(memory, bytes, StreamRef::from_native(stream));
    return {};
  }
  const auto place = current();
  if (!place) return place.error();
  // Commands that were enqueued before retain the buffer until they complete.
  return verified("clReleaseMemObject", (*place)->cl().ReleaseMemObject(static_cast<cl_mem>(memory)));
}

Status OpenClDevice::copy_to_device(void* to, const void* from, std::size_t bytes, void* stream) {
  const auto place = current_for_queue(stream);
  if (!place) return place.error();
  if (bytes == 0) return {};
  return verified("clEnqueueWriteBuffer",
                  (*place)->cl().EnqueueWriteBuffer(queue_of(stream), static_cast<cl_mem>(to), CL_TRUE, 0, bytes, from,
                                                    0, nullptr, nullptr));
}

Status OpenClDevice::copy_to_host(void* to, void* from, std::size_t bytes, void* stream) {
  const auto place = current_for_queue(stream);
  if (!place) return place.error();
  if (bytes == 0) return {};
  return verified("clEnqueueReadBuffer", (*place)->cl().EnqueueReadBuffer(queue_of(stream), static_cast<cl_mem>(from),
                                                                          CL_TRUE, 0, bytes, to, 0, nullptr, nullptr));
}

Status OpenClDevice::synchronize(void* stream) {
  const auto place = current_for_queue(stream);
  if (!place) return place.error();
  return verified("clFinish", (*place)->cl().Finish(queue_of(stream)));
}

}  // namespace kiln
