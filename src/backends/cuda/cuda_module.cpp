// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cuda_module.hpp"

#include "backends/cuda/cubin.hpp"
#include "backends/cuda/cuda_kernel.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

using cuda::DriverResult;

// The driver reads numbers in place, and its alignment requirements are not documented.
constexpr std::uintptr_t kAlignment = 16;

// Returns the image for the driver. The driver gets no size, so that text must be NUL-terminated and machine code must
// be complete.
Result<Bytes> image_of(const Artifact& artifact) {
  const Bytes& bytes = artifact.bytes;
  if (bytes.empty()) return make_error(Code::LoadRejected, "invalid image: it is empty");
  if (artifact.target.form == Form::Ptx) return Bytes::of(std::string(bytes.view()));
  if (artifact.target.form != Form::Cubin) {
    return make_error(Code::LoadRejected,
                      std::string("the CUDA driver loads cubins and PTX, not ") + to_string(artifact.target.form));
  }
  if (Status whole = check_cubin(bytes.view()); !whole) return std::move(whole).error();
  const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0;
  return aligned ? bytes : Bytes::copy_of(bytes.view());
}

}  // namespace

Result<std::shared_ptr<const CudaLibrary>> CudaLibrary::load(std::shared_ptr<const CudaApi> api,
                                                             const Artifact& artifact) {
  const Result<Bytes> image = image_of(artifact);
  if (!image) return image.error();
  const ScopedRelaxedCapture relaxed(*api);
  if (!relaxed.entered()) return relaxed.entered().error();
  cuda::Library library = nullptr;
  // The driver makes its own copy: the option to avoid that is not set.
  const DriverResult result =
      (*api)->LibraryLoadData(&library, image->data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result != DriverResult::Success) return api->failure("cuLibraryLoadData", result);
  return std::shared_ptr<const CudaLibrary>(new CudaLibrary(std::move(api), library));
}

CudaLibrary::~CudaLibrary() {
  const ScopedRelaxedCapture relaxed(*api_);
  (*api_)->LibraryUnload(library_);
}

Result<std::shared_ptr<DeviceKernel>> CudaModule::kernel(const std::string& symbol) {
  const CudaApi& api = library_->api();
  const ScopedRelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered().error();
  cuda::Kernel kernel = nullptr;
  const DriverResult result = api->LibraryGetKernel(&kernel, library_->handle(), symbol.c_str());
  if (result == DriverResult::Success) return std::shared_ptr<DeviceKernel>(new CudaKernel(library_, kernel, symbol));
  Error said = api.failure("cuLibraryGetKernel", result);
  said.message = "kernel '" + symbol + "' was not found in this image: " + said.message;
  return said;
}

}  // namespace kiln
