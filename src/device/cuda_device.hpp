#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "device/cuda_api.hpp"
#include "device/device.hpp"

namespace kiln {

/// The devices of NVIDIA's driver, which is opened and initialised by the first question. It follows the calling
/// thread's current context, primary or not, and makes or switches none, except `make_current`: that retains the
/// device's primary context until this object goes. docs/devices.md has the rules of contexts and of captures.
class CudaDevice final : public Device {
 public:
  struct Options {
    std::string driver;   ///< the path of libcuda; empty for the one that the loader finds
    Allocator allocator;  ///< of CUdeviceptr; the driver's stream-ordered pool where none is given
  };
  explicit CudaDevice(Options options);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  std::string kind() const override { return "cuda"; }
  Result<std::vector<DeviceInfo>> devices() override;
  Result<Place> current() override;
  Status make_current(std::size_t device) override;
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override;

  Result<void*> make_stream() override;
  Status release_stream(void* stream) override;
  Result<bool> capturing(void* stream) override;

  Result<void*> allocate(std::size_t bytes, void* stream) override;
  Status release(void* memory, std::size_t bytes, void* stream) override;
  Status copy_in(void* to, const void* from, std::size_t bytes, void* stream) override;
  Status copy_out(void* to, void* from, std::size_t bytes, void* stream) override;
  Status synchronise(void* stream) override;

 private:
  struct Known {
    cuda::DeviceNumber number = 0;
    DeviceInfo info;
  };
  Result<std::shared_ptr<const CudaApi>> api();
  /// What is the same of both copies; `enqueue` puts it on the stream.
  Status copy(const char* what, std::size_t bytes, void* stream,
              const std::function<cuda::DriverResult(const CudaApi&)>& enqueue);
  Result<cuda::Context> primary(const CudaApi& api, cuda::DeviceNumber device);
  Result<std::shared_ptr<const CudaApi>> open() KILN_REQUIRES(mutex_);
  /// Lists the devices once; `known_` is complete after a success.
  Status list() KILN_REQUIRES(mutex_);

  const Options options_;
  Mutex mutex_;
  std::shared_ptr<const CudaApi> api_ KILN_GUARDED_BY(mutex_);
  std::vector<Known> known_ KILN_GUARDED_BY(mutex_);
  /// Of its own, because making a context takes long and others copy and allocate meanwhile.
  Mutex primaries_mutex_;
  std::map<cuda::DeviceNumber, cuda::Context> primaries_ KILN_GUARDED_BY(primaries_mutex_);  // to be released
};

}  // namespace kiln
