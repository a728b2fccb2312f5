// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "backends/compiler.hpp"
#include "backends/opencl/opencl_library.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A compiler of OpenCL C that uses the compiler in a device's driver. One instance serves one device, because the
/// identity must name only the driver of that device: an upgrade of the driver of another device changes nothing. The
/// first call opens the driver, cache hits included, because the driver reports its version only when open.
/// Thread-safe.
class OpenClCompiler final : public Compiler {
 public:
  /// `device` is the architecture of an OpenCL target (see opencl_devices); empty means the default device.
  explicit OpenClCompiler(std::string device = {});
  ~OpenClCompiler() override;
  OpenClCompiler(const OpenClCompiler&) = delete;
  OpenClCompiler& operator=(const OpenClCompiler&) = delete;

  std::string kind() const override { return "opencl"; }
  Result<CompilerIdentity> identity(const RequestContext& context) override;
  Status supports(const Target& target) override;
  bool is_self_contained(const Recipe& recipe) const override;
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override;

  /// Returns the device for which this instance compiles.
  Result<OpenClDeviceInfo> device();

 private:
  struct DriverState;
  Result<std::shared_ptr<const DriverState>> open();
  Result<std::shared_ptr<const DriverState>> open_for(const Target& target);
  Result<cl_context> context(const DriverState& opened);

  const std::string device_;
  Mutex mutex_;
  std::shared_ptr<const DriverState> opened_ KILN_GUARDED_BY(mutex_);
  cl_context context_ KILN_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace kiln
