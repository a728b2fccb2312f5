#pragma once

#include <memory>
#include <string>

#include "base/mutex.hpp"
#include "compile/compiler.hpp"
#include "vendor/opencl_library.hpp"

namespace kiln {

/// Compiles OpenCL C with the compiler in a device's driver. One of these is for one device, because the identity must
/// name that device's driver and no other: upgrading the driver of a second device changes nothing for the first.
/// The driver is opened by the first question, hits included: that is where its version can be had. Any thread.
class OpenClCompiler final : public Compiler {
 public:
  /// `device` is the architecture of an OpenCL target (see opencl_devices); empty for the default device.
  explicit OpenClCompiler(std::string device = {});
  ~OpenClCompiler() override;
  OpenClCompiler(const OpenClCompiler&) = delete;
  OpenClCompiler& operator=(const OpenClCompiler&) = delete;

  std::string kind() const override { return "opencl"; }
  Result<CompilerIdentity> identity() override;
  Status supports(const Target& target) override;
  bool closed(const Recipe& recipe) const override;
  Result<Compiled> compile(const Recipe& recipe) override;

  /// The device that it compiles for.
  Result<OpenClDeviceInfo> device();

 private:
  struct Opened;
  Result<std::shared_ptr<const Opened>> open();
  Result<std::shared_ptr<const Opened>> open_for(const Target& target);
  Result<cl_context> context(const Opened& opened);

  const std::string device_;
  Mutex mutex_;
  std::shared_ptr<const Opened> opened_ KILN_GUARDED_BY(mutex_);
  cl_context context_ KILN_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace kiln
