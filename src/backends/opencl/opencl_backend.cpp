// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_backend.hpp"

#include <kiln/session.hpp>

#include "backends/opencl/opencl_compiler.hpp"
#include "backends/opencl/opencl_device.hpp"
#include "backends/opencl/opencl_inputs.hpp"
#include "backends/opencl/opencl_library.hpp"

namespace kiln {
namespace {

class OpenClBackend final : public BackendFactory {
 public:
  std::string kind() const override { return "opencl"; }

  std::unique_ptr<Compiler> make_compiler(const std::string& device) const override {
    return std::make_unique<OpenClCompiler>(device);
  }
  std::unique_ptr<Device> make_device(const SessionOptions& options, Allocator allocator) const override {
    return std::make_unique<OpenClDevice>(OpenClDevice::Options{static_cast<cl_context>(options.opencl.context),
                                                                static_cast<cl_device_id>(options.opencl.device),
                                                                std::move(allocator)});
  }

  bool is_device_present(const SessionOptions& options) const override {
    return options.opencl.context != nullptr || opencl_installed().has_value();
  }
  bool has_only_cpu_devices(const SessionOptions& options) const override {
    return options.opencl.context == nullptr && opencl_is_pocl_only();
  }

  bool runs_programs() const override { return true; }
  std::vector<std::pair<std::string, std::string>> worker_environment() const override { return opencl_place(); }
};

}  // namespace

const BackendFactory& opencl_backend() {
  static const OpenClBackend backend;
  return backend;
}

}  // namespace kiln
