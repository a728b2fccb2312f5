// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/cuda_api.hpp"
#include "backends/device.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// The devices of NVIDIA's driver. The first call opens and initializes the driver. It uses the calling thread's
/// current context, primary or not, and creates or switches none, except `make_current` and `ensure_current`, which
/// retain the device's primary context until the destructor. docs/how-to/contexts-and-graphs.md has the rules of
/// contexts and captures. Thread-safe.
class CudaDevice final : public Device {
 public:
  struct Options {
    std::string driver;   ///< path of libcuda; empty means the one that the dynamic loader finds
    Allocator allocator;  ///< allocator of CUdeviceptr; empty means the driver's stream-ordered pool
  };
  explicit CudaDevice(Options options);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string kind() const override { return "cuda"; }
  Result<std::vector<DeviceInfo>> devices() override;
  Result<CurrentContext> current_context() override;
  Status make_current(std::size_t device) override;
  Status ensure_current() override;
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override;

  Result<void*> create_stream() override;
  Status release_stream(void* stream) override;
  Result<bool> capturing(void* stream) override;

  Result<void*> allocate(std::size_t bytes, void* stream) override;
  Status release(void* memory, std::size_t bytes, void* stream) override;
  Status copy_to_device(void* to, const void* from, std::size_t bytes, void* stream) override;
  Status copy_to_host(void* to, void* from, std::size_t bytes, void* stream) override;
  std::optional<bool> is_pinned(const void* host) override;
  Status synchronize(void* stream) override;

 private:
  struct DeviceEntry {
    cuda::DeviceNumber number = 0;
    DeviceInfo info;
  };
  Result<std::shared_ptr<const CudaApi>> api();
  /// The common part of both copies; `enqueue` puts the copy on the stream.
  Status copy(const char* what, std::size_t bytes, void* stream,
              const std::function<cuda::DriverResult(const CudaApi&)>& enqueue);
  Result<cuda::Context> primary(const CudaApi& api, cuda::DeviceNumber device);
  Result<std::shared_ptr<const CudaApi>> open() KILN_REQUIRES(mutex_);
  /// Lists the devices once; `device_entries_` is complete after success.
  Status list() KILN_REQUIRES(mutex_);

  const Options options_;
  Mutex mutex_;
  std::shared_ptr<const CudaApi> api_ KILN_GUARDED_BY(mutex_);
  std::vector<DeviceEntry> device_entries_ KILN_GUARDED_BY(mutex_);
  /// A separate mutex, because creating a context is slow and other threads copy and allocate during this time.
  Mutex primaries_mutex_;
  std::map<cuda::DeviceNumber, cuda::Context> primary_contexts_ KILN_GUARDED_BY(primaries_mutex_);  // released by the
                                                                                                    // destructor
};

}  // namespace kiln
