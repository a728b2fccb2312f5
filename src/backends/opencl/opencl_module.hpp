// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backends/device.hpp"
#include "backends/opencl/opencl_context.hpp"

namespace kiln {

/// An OpenCL program built from a binary. It and its kernels retain their context. Thread-safe.
class OpenClModule final : public Module {
 public:
  static Result<std::shared_ptr<Module>> load(std::shared_ptr<const OpenClContextState> place,
                                              const Artifact& artifact);
  ~OpenClModule() override;
  OpenClModule(const OpenClModule&) = delete;
  OpenClModule& operator=(const OpenClModule&) = delete;

  Result<std::shared_ptr<DeviceKernel>> kernel(const std::string& symbol) override;

 private:
  OpenClModule(std::shared_ptr<const OpenClContextState> place, cl_program program)
      : place_(std::move(place)), program_(program) {}

  const std::shared_ptr<const OpenClContextState> place_;
  const cl_program program_;
};

}  // namespace kiln
