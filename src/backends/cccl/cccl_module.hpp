// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/artifact_loader.hpp"
#include "backends/cccl/cccl_library.hpp"
#include "backends/cuda/cuda_api.hpp"
#include "base/mutex.hpp"
#include "core/cccl_envelope.hpp"

namespace kiln {

/// A loaded CCCL algorithm. Its kernels cannot be launched individually; `kiln::cccl::get` makes the algorithm
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
  std::optional<CcclBuild> build_;  // reset by the destructor
  const std::vector<std::string> kernels_;
};

/// A loader of artifacts of Form::Cccl. It checks the envelope, that this library built the blob, that its capability
/// is that of the target, and that its code is intact and contains the kernels that it names. Only then does the
/// library pass it to the driver, so that the library has no reason to print. Thread-safe.
class CcclLoader final : public ArtifactLoader {
 public:
  /// The library to use and the libraries that it needs in addition to the driver: NVRTC and nvJitLink, by path or by
  /// name.
  struct LibraryPaths {
    CcclCandidate library;
    std::vector<std::string> requirements;
  };
  /// `find` is called by the first load that passes the first checks. `driver` is the path of libcuda; empty means the
  /// one that the dynamic loader finds.
  CcclLoader(std::string driver, std::function<Result<LibraryPaths>()> find)
      : driver_(std::move(driver)), find_(std::move(find)) {}
  Form form() const override { return Form::Cccl; }
  Result<std::shared_ptr<Module>> load(const Artifact& artifact) override;

 private:
  /// The open libraries; constant after opening.
  struct OpenLibraries {
    std::shared_ptr<const CudaApi> api;
    std::shared_ptr<const CcclLibrary> library;
  };
  /// Returns the open library. Returns Code::LoadRejected before opening it if another library built the blob.
  Result<OpenLibraries> open_for(const CcclEnvelope& envelope);

  const std::string driver_;
  const std::function<Result<LibraryPaths>()> find_;  // searches only when an algorithm is first loaded
  Mutex mutex_;
  std::optional<LibraryPaths> library_paths_ KILN_GUARDED_BY(mutex_);
  OpenLibraries opened_ KILN_GUARDED_BY(mutex_);
};

/// Returns Code::LoadRejected if the metadata of a blob names kernels that its code does not contain.
Status check_cccl_names(std::string_view blob, std::string_view code, const std::vector<std::string>& kernels);

}  // namespace kiln
