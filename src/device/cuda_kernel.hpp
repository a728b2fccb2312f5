#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/mutex.hpp"
#include "device/cuda_module.hpp"

namespace kiln {

/// A kernel of a library. It keeps no function of any context, so that there is none that could go stale: the driver is
/// given the kernel itself, and finds the function of the current context.
class CudaKernel final : public DeviceKernel {
 public:
  CudaKernel(std::shared_ptr<const CudaLibrary> library, cuda::Kernel kernel, std::string name);

  void* native() const override { return kernel_; }
  Result<void*> function() override;
  Status prepare(void* stream) override;
  Status launch(const Launch& how, const Argument* arguments, std::size_t count) override;
  Result<Occupancy> occupancy(std::size_t shared_bytes) override;
  Result<std::vector<std::size_t>> parameters() override;

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

  /// The context in which it was last found ready; zero is none, the driver's ids begin at one. Whoever reads a context
  /// here, or finds one in `ready_`, may read `parameters_`: they are written before, and once.
  std::atomic<unsigned long long> last_{0};
  Mutex mutex_;
  std::unordered_set<unsigned long long> ready_ KILN_GUARDED_BY(mutex_);
  std::vector<std::size_t> parameters_;
  bool parameters_known_ KILN_GUARDED_BY(mutex_) = false;
  std::map<cuda::DeviceNumber, std::size_t> shared_allowed_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
