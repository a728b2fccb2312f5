// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "backends/device.hpp"
#include "backends/opencl/opencl_context.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// An OpenCL kernel with its own cl_kernel. Setting arguments and launching are two calls on a shared object, so that a
/// mutex covers both. Thread-safe.
class OpenClKernel final : public DeviceKernel {
 public:
  /// Takes ownership of the kernel, which retains its program.
  static Result<std::shared_ptr<DeviceKernel>> take(std::shared_ptr<const OpenClContextState> place, cl_kernel kernel,
                                                    std::string name);
  ~OpenClKernel() override;
  OpenClKernel(const OpenClKernel&) = delete;
  OpenClKernel& operator=(const OpenClKernel&) = delete;

  void* native() const override { return kernel_; }
  Result<void*> function() override { return static_cast<void*>(kernel_); }
  /// Does nothing: loading builds a program for the devices of its context.
  Status prepare(void* /*stream*/) override { return {}; }
  Status launch(const LaunchConfig& config, const Argument* arguments, std::size_t count) override;
  Result<Occupancy> occupancy(std::size_t shared_bytes) override;
  Result<std::shared_ptr<const KernelParameters>> parameters() override;

 private:
  OpenClKernel(std::shared_ptr<const OpenClContextState> place, cl_kernel kernel, std::string name);
  Status check(const LaunchConfig& config) const;
  Status set_arguments(const Argument* arguments, std::size_t count) KILN_REQUIRES(mutex_);
  KernelParameter ask_parameter(cl_uint index) const;
  std::string parameter_text(cl_uint index, cl_kernel_arg_info what) const;

  const std::shared_ptr<const OpenClContextState> place_;
  const cl_kernel kernel_;  // mutex_ guards its arguments
  const std::string name_;
  std::size_t arguments_ = 0;
  Mutex mutex_;
  std::shared_ptr<const KernelParameters> parameters_ KILN_GUARDED_BY(mutex_);  // null until they are asked for
};

}  // namespace kiln
