// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backends/cuda/cuda_api.hpp"
#include "backends/device.hpp"

namespace kiln {

/// A library of the driver: code that belongs to no context. The first use in a context loads it there. Immutable and
/// thread-safe.
class CudaLibrary {
 public:
  static Result<std::shared_ptr<const CudaLibrary>> load(std::shared_ptr<const CudaApi> api, const Artifact& artifact);
  ~CudaLibrary();
  CudaLibrary(const CudaLibrary&) = delete;
  CudaLibrary& operator=(const CudaLibrary&) = delete;

  const CudaApi& api() const { return *api_; }
  cuda::Library handle() const { return library_; }

 private:
  CudaLibrary(std::shared_ptr<const CudaApi> api, cuda::Library library) : api_(std::move(api)), library_(library) {}

  const std::shared_ptr<const CudaApi> api_;
  const cuda::Library library_;
};

/// A library as a module. The library lives as long as any of its kernels. Thread-safe.
class CudaModule final : public Module {
 public:
  explicit CudaModule(std::shared_ptr<const CudaLibrary> library) : library_(std::move(library)) {}
  Result<std::shared_ptr<DeviceKernel>> kernel(const std::string& symbol) override;

 private:
  const std::shared_ptr<const CudaLibrary> library_;
};

}  // namespace kiln
