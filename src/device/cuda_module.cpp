#include "device/cuda_module.hpp"

#include "base/error.hpp"
#include "device/cuda_kernel.hpp"
#include "vendor/cubin.hpp"

namespace kiln {
namespace {

using cuda::DriverResult;

// The driver reads numbers where they lie, and nobody promises that it minds where that is.
constexpr std::uintptr_t kAlignment = 16;

// What the driver is given: it takes no size, so text must end by a zero and machine code must be whole.
Result<Bytes> image_of(const Artifact& artifact) {
  const Bytes& bytes = artifact.bytes;
  if (bytes.empty()) return failure(Code::LoadRefused, "an empty image");
  if (artifact.target.form == Form::Ptx) return Bytes::of(std::string(bytes.view()));
  if (artifact.target.form != Form::Cubin) {
    return failure(Code::LoadRefused,
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
  const RelaxedCapture relaxed(*api);
  if (!relaxed.entered()) return relaxed.entered().error();
  cuda::Library library = nullptr;
  // The driver keeps a copy of its own: the option that it need not is not set.
  const DriverResult result =
      (*api)->LibraryLoadData(&library, image->data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result != DriverResult::Success) return api->failure("cuLibraryLoadData", result);
  return std::shared_ptr<const CudaLibrary>(new CudaLibrary(std::move(api), library));
}

CudaLibrary::~CudaLibrary() {
  const RelaxedCapture relaxed(*api_);
  (*api_)->LibraryUnload(library_);
}

Result<std::shared_ptr<DeviceKernel>> CudaModule::kernel(const std::string& symbol) {
  const CudaApi& api = library_->api();
  const RelaxedCapture relaxed(api);
  if (!relaxed.entered()) return relaxed.entered().error();
  cuda::Kernel kernel = nullptr;
  const DriverResult result = api->LibraryGetKernel(&kernel, library_->handle(), symbol.c_str());
  if (result == DriverResult::Success) return std::shared_ptr<DeviceKernel>(new CudaKernel(library_, kernel, symbol));
  Error said = api.failure("cuLibraryGetKernel", result);
  said.message = "no kernel '" + symbol + "' in this image: " + said.message;
  return said;
}

}  // namespace kiln
