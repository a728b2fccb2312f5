#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "core/cccl_envelope.hpp"
#include "device/cuda_api.hpp"
#include "device/loader.hpp"
#include "vendor/cccl_library.hpp"

namespace kiln {

/// An algorithm of CCCL's that is loaded. It has no kernels to be launched one by one: `kiln::cccl::get` makes it
/// callable.
class CcclModule final : public Module {
 public:
  CcclModule(std::shared_ptr<const CudaApi> api, CcclBuild build, std::vector<std::string> kernels)
      : api_(std::move(api)), build_(std::move(build)), kernels_(std::move(kernels)) {}
  ~CcclModule() override;
  CcclModule(const CcclModule&) = delete;
  CcclModule& operator=(const CcclModule&) = delete;

  Result<std::shared_ptr<DeviceKernel>> kernel(const std::string& symbol) override;
  const CcclBuild& build() const { return *build_; }
  const std::vector<std::string>& kernels() const { return kernels_; }

 private:
  const std::shared_ptr<const CudaApi> api_;
  std::optional<CcclBuild> build_;  // until it ends
  const std::vector<std::string> kernels_;
};

/// Loads artifacts of Form::Cccl: checks the envelope, that the blob was made by this very library, that its capability
/// is the target's, that its code is whole and has the kernels that it names; only then does the library give it to the
/// driver, so that it has no reason to print anything.
class CcclLoader final : public Loader {
 public:
  /// The library to use and what it needs besides the driver: NVRTC and nvJitLink, by path or by name.
  struct Home {
    CcclCandidate library;
    std::vector<std::string> needs;
  };
  /// `find` is asked at the first load that gets so far, `driver` is the path of libcuda, empty for the one that the
  /// loader finds.
  CcclLoader(std::string driver, std::function<Result<Home>()> find)
      : driver_(std::move(driver)), find_(std::move(find)) {}
  Form form() const override { return Form::Cccl; }
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override;

 private:
  /// What is open: constant once it is there.
  struct Opened {
    std::shared_ptr<const CudaApi> api;
    std::shared_ptr<const CcclLibrary> library;
  };
  /// The library that is used, opened; Code::LoadRefused where the blob is not of it, before it is.
  Result<Opened> open_for(const CcclEnvelope& envelope);

  const std::string driver_;
  const std::function<Result<Home>()> find_;
  Mutex mutex_;
  std::optional<Home> home_ KILN_GUARDED_BY(mutex_);
  Opened opened_ KILN_GUARDED_BY(mutex_);
};

/// Code::LoadRefused where a blob names kernels, in what is around its code, that the code does not have.
Status check_cccl_names(std::string_view blob, std::string_view code, const std::vector<std::string>& kernels);

}  // namespace kiln
