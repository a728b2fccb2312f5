#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "core/cccl_envelope.hpp"
#include "device/loader.hpp"
#include "vendor/cccl_library.hpp"

namespace kiln {

/// An algorithm of CCCL's that is loaded. It has no kernels to be launched one by one: `kiln::cccl::get` makes it
/// callable.
class CcclModule final : public Module {
 public:
  CcclModule(CcclBuild build, std::vector<std::string> kernels)
      : build_(std::move(build)), kernels_(std::move(kernels)) {}
  Result<std::shared_ptr<DeviceKernel>> kernel(const std::string& symbol) override;
  const CcclBuild& build() const { return build_; }
  const std::vector<std::string>& kernels() const { return kernels_; }

 private:
  const CcclBuild build_;
  const std::vector<std::string> kernels_;
};

/// Loads artifacts of Form::Cccl: checks the envelope, that the blob was made by this very library, that its capability
/// fits the device's, that its code is whole and has the kernels that it names; only then does the library see it, so
/// that it has no reason to print anything.
class CcclLoader final : public Loader {
 public:
  /// `find` says which library to use; it is asked at the first load. The process must have the CUDA driver open.
  explicit CcclLoader(std::function<Result<CcclCandidate>()> find) : find_(std::move(find)) {}
  Form form() const override { return Form::Cccl; }
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override;

 private:
  Result<std::shared_ptr<const CcclLibrary>> library();

  const std::function<Result<CcclCandidate>()> find_;
  Mutex mutex_;
  std::shared_ptr<const CcclLibrary> library_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
