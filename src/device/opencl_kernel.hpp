#pragma once

#include <memory>
#include <string>

#include "base/mutex.hpp"
#include "device/device.hpp"
#include "device/opencl_place.hpp"

namespace kiln {

/// A kernel of OpenCL with its own cl_kernel: setting arguments and launching are two calls of a shared object, so one
/// thread at a time does both.
class OpenClKernel final : public DeviceKernel {
 public:
  /// Takes the kernel, which keeps its program.
  static Result<std::shared_ptr<DeviceKernel>> take(std::shared_ptr<const OpenClPlace> place, cl_kernel kernel,
                                                    std::string name);
  ~OpenClKernel() override;
  OpenClKernel(const OpenClKernel&) = delete;
  OpenClKernel& operator=(const OpenClKernel&) = delete;

  void* native() const override { return kernel_; }
  Result<void*> function() override { return static_cast<void*>(kernel_); }
  /// A program is built for the devices of its context when it is loaded: there is nothing left to do.
  Status prepare(void* /*stream*/) override { return {}; }
  Status launch(const Launch& how, const Argument* arguments, std::size_t count) override;
  Result<Occupancy> occupancy(std::size_t shared_bytes) override;

 private:
  OpenClKernel(std::shared_ptr<const OpenClPlace> place, cl_kernel kernel, std::string name);
  Status check(const Launch& how) const;
  Status set_arguments(const Argument* arguments, std::size_t count) KILN_REQUIRES(mutex_);

  const std::shared_ptr<const OpenClPlace> place_;
  const cl_kernel kernel_;  // its arguments are guarded by mutex_
  const std::string name_;
  std::size_t arguments_ = 0;
  Mutex mutex_;
};

}  // namespace kiln
