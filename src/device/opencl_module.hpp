#pragma once

#include <memory>
#include <string>
#include <utility>

#include "device/device.hpp"
#include "device/opencl_place.hpp"

namespace kiln {

/// A program of OpenCL, built from a binary. It and its kernels keep their context.
class OpenClModule final : public Module {
 public:
  static Result<std::shared_ptr<Module>> load(std::shared_ptr<const OpenClPlace> place, const Artifact& artifact);
  ~OpenClModule() override;
  OpenClModule(const OpenClModule&) = delete;
  OpenClModule& operator=(const OpenClModule&) = delete;

  Result<std::shared_ptr<DeviceKernel>> kernel(const std::string& symbol) override;

 private:
  OpenClModule(std::shared_ptr<const OpenClPlace> place, cl_program program)
      : place_(std::move(place)), program_(program) {}

  const std::shared_ptr<const OpenClPlace> place_;
  const cl_program program_;
};

}  // namespace kiln
