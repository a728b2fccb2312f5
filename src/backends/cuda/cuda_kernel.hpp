// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "backends/cuda/cuda_module.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A kernel of a library. It stores no function of a context, which could become stale: it passes the kernel itself to
/// the driver, which finds the function of the current context. Thread-safe.
class CudaKernel final : public DeviceKernel {
 public:
  CudaKernel(std::shared_ptr<const CudaLibrary> library, cuda::Kernel kernel, std::string name);

  void* native() const override { return kernel_; }
  Result<void*> function() override;
  Status prepare(void* stream) override;
  Status launch(const LaunchConfig& config, const Argument* arguments, std::size_t count) override;
  Result<Occupancy> occupancy(std::size_t shared_bytes) override;
  std::size_t static_shared_bytes() override;
  Result<std::shared_ptr<const KernelParameters>> parameters() override;

 private:
  bool is_ready_in(unsigned long long context);
  Status load_into(unsigned long long context);
  Result<std::vector<std::size_t>> ask_parameters() const;
  Status check_arguments(const Argument* arguments, std::size_t count) const;
  Status allow_shared_bytes(std::size_t bytes);

  const CudaApi& api() const { return library_->api(); }

  const std::shared_ptr<const CudaLibrary> library_;
  const cuda::Kernel kernel_;
  const std::string name_;

  /// The context in which the kernel was last ready; 0 means none (the driver's ids start at 1). A thread that reads a
  /// context here, or finds one in `ready_`, can read `parameters_`, which are written once and before.
  std::atomic<unsigned long long> last_{0};
  Mutex mutex_;
  std::unordered_set<unsigned long long> ready_ KILN_GUARDED_BY(mutex_);
  std::shared_ptr<const KernelParameters> parameters_;
  std::map<cuda::DeviceNumber, std::size_t> shared_allowed_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
