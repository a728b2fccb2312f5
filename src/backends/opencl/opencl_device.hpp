// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/device.hpp"
#include "backends/opencl/opencl_context.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// The devices behind the OpenCL loader. OpenCL has no current context. All threads use the caller's context if one was
/// given, otherwise a context that kiln creates for the default device at the first use; `make_current` selects another
/// device for all threads. Streams are command queues, memory is cl_mem. Thread-safe.
class OpenClDevice final : public Device {
 public:
  struct Options {
    cl_context context = nullptr;   ///< the caller's context, which the caller keeps alive; set together with
    cl_device_id device = nullptr;  ///< the device of this context to use
    Allocator allocator;            ///< allocator of cl_mem; empty means the driver's buffers
  };
  explicit OpenClDevice(Options options);

  std::string kind() const override { return "opencl"; }
  Result<std::vector<DeviceInfo>> devices() override;
  Result<CurrentContext> current_context() override;
  Status make_current(std::size_t device) override;
  Status ensure_current() override { return {}; }  // OpenCL has no current context
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override;

  Result<void*> create_stream() override;
  Status release_stream(void* stream) override;
  Result<bool> capturing(void* /*stream*/) override { return false; }

  Result<void*> allocate(std::size_t bytes, void* stream) override;
  Status release(void* memory, std::size_t bytes, void* stream) override;
  Status copy_to_device(void* to, const void* from, std::size_t bytes, void* stream) override;
  Status copy_to_host(void* to, void* from, std::size_t bytes, void* stream) override;
  Status synchronize(void* stream) override;

 private:
  /// The opened driver and the contexts of its devices.
  struct DriverState {
    std::shared_ptr<const OpenClLibrary> library;
    std::vector<OpenClLibrary::Device> devices;
    std::vector<std::shared_ptr<const OpenClContextState>> places;  ///< by device; null until first used
    std::size_t chosen = 0;
  };
  Result<DriverState*> open() KILN_REQUIRES(mutex_);
  Result<std::shared_ptr<const OpenClContextState>> context_of(std::size_t device) KILN_REQUIRES(mutex_);
  /// Returns the context of the selected device, and the device.
  Result<std::shared_ptr<const OpenClContextState>> current(cl_device_id* device = nullptr);
  /// Returns the context for an operation on a queue; Code::InvalidArgument if the queue is null.
  Result<std::shared_ptr<const OpenClContextState>> current_for_queue(void* queue);

  const Options options_;
  Mutex mutex_;
  std::unique_ptr<DriverState> opened_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
