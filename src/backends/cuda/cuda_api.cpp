// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/cuda_api.hpp"

#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "base/process/dynamic_library.hpp"

namespace kiln {
namespace {

using cuda::DriverResult;

constexpr const char* kLibrary = "libcuda.so.1";

struct ErrorHelp {
  DriverResult result;
  Code code;
  const char* advice;  // next step after the driver's own text; empty if that text is enough
};

// Results that are not listed mean that the machine could not do it: Code::Unavailable.
constexpr ErrorHelp kMeanings[] = {
    {DriverResult::InvalidValue, Code::InvalidArgument, ""},
    {DriverResult::InvalidDevice, Code::InvalidArgument, ""},
    {DriverResult::InvalidHandle, Code::InvalidArgument, "check that the stream belongs to the current context"},
    {DriverResult::NotFound, Code::InvalidArgument, ""},
    {DriverResult::LaunchOutOfResources, Code::InvalidArgument, "launch smaller blocks or less shared memory"},
    {DriverResult::CooperativeLaunchTooLarge, Code::InvalidArgument,
     "launch at most as many blocks as can run concurrently"},
    {DriverResult::InvalidClusterSize, Code::InvalidArgument, ""},
    {DriverResult::NotSupported, Code::Unsupported, ""},
    {DriverResult::NotPermitted, Code::Unsupported, ""},
    {DriverResult::InvalidImage, Code::LoadRejected, ""},
    {DriverResult::NoBinaryForGpu, Code::LoadRejected, "compile it for this device's architecture"},
    {DriverResult::InvalidPtx, Code::LoadRejected, ""},
    {DriverResult::JitCompilerNotFound, Code::LoadRejected, "compile it to machine code"},
    {DriverResult::UnsupportedPtxVersion, Code::LoadRejected,
     "compile it to machine code or install a driver as new as the compiler"},
    {DriverResult::InvalidSource, Code::LoadRejected, ""},
    {DriverResult::FileNotFound, Code::LoadRejected, ""},
    {DriverResult::NoDevice, Code::Unavailable, "check that a GPU is visible (CUDA_VISIBLE_DEVICES, nvidia-smi)"},
    {DriverResult::StubLibrary, Code::Unavailable, "remove the toolkit's stub from the library path"},
    {DriverResult::NotInitialized, Code::Unavailable, "a forked child cannot use its parent's driver"},
    {DriverResult::InvalidContext, Code::Unavailable, "call make_current or make a context current in this thread"},
    {DriverResult::ContextIsDestroyed, Code::Unavailable, "make a live context current"},
};

bool is_capture_result(DriverResult result) {
  return result >= DriverResult::CaptureUnsupported && result <= DriverResult::CaptureWrongThread;
}

ErrorHelp error_help(DriverResult result) {
  if (is_capture_result(result)) return {result, Code::Capturing, "do it before the capture starts"};
  for (const ErrorHelp& meaning : kMeanings) {
    if (meaning.result == result) return meaning;
  }
  return {result, Code::Unavailable, ""};
}

/// Sets the functions of a table that the driver has. Returns the name of a missing one.
template <class Functions>
std::string bind(cuda::GetProcAddress find, Functions& functions) {
  std::string missing;
  cuda::for_each_function(functions, [&](auto& function, const char* name, int version) {
    void* address = nullptr;
    cuda::SymbolStatus status = cuda::SymbolStatus::NotFound;
    const DriverResult result = find(name, &address, version, 0, &status);
    if (result != DriverResult::Success || status != cuda::SymbolStatus::Found) address = nullptr;
    if (address == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(address);
  });
  return missing;
}

}  // namespace

Result<std::shared_ptr<const CudaApi>> CudaApi::open(const std::string& path) {
  const std::string name = path.empty() ? kLibrary : path;
  const Result<DynamicLibrary> library = DynamicLibrary::open(name);
  if (!library) {
    return kiln::make_error(
        Code::Unavailable,
        library.error().message + "; install NVIDIA's driver, or set driver (KILN_DRIVER) to its library");
  }
  std::shared_ptr<CudaApi> api(new CudaApi);
  const bool found = library->bind(api->find_, cuda::kGetProcAddressSymbol);
  const std::string missing = found ? bind(api->find_, api->functions_) : cuda::kGetProcAddressSymbol;
  if (!missing.empty()) {
    return kiln::make_error(Code::Unsupported,
                            name + " has no " + missing + "; install the driver of CUDA 12.4 or newer");
  }
  if (Status begun = api->check("cuInit", api->functions_.Init(0)); !begun) return std::move(begun).error();
  return std::shared_ptr<const CudaApi>(std::move(api));
}

cuda::MemoryFunctions CudaApi::memory_functions() const {
  cuda::MemoryFunctions functions;
  bind(find_, functions);
  return functions;
}

Error CudaApi::failure(const char* what, DriverResult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  functions_.GetErrorName(result, &name);
  functions_.GetErrorString(result, &text);
  const ErrorHelp meaning = error_help(result);
  std::string message = std::string(what) + " failed with " + (name != nullptr ? name : "an unknown error") + " (" +
                        std::to_string(static_cast<int>(result)) + ")";
  if (text != nullptr) message.append(": ").append(text);
  if (*meaning.advice != '\0') message.append("; ").append(meaning.advice);
  return kiln::make_error(meaning.code, std::move(message));
}

Status CudaApi::check(const char* what, DriverResult result) const {
  if (result == DriverResult::Success) return {};
  return failure(what, result);
}

Result<unsigned long long> CudaApi::context_id() const {
  unsigned long long id = 0;
  const DriverResult result = functions_.CtxGetId(nullptr, &id);
  if (result == DriverResult::InvalidContext) {
    return kiln::make_error(Code::Unavailable,
                            "this thread has no current CUDA context; call make_current in it, create a stream "
                            "with kiln in it, or make a context of your own current");
  }
  if (result != DriverResult::Success) return failure("cuCtxGetId", result);
  return id;
}

Result<bool> CudaApi::is_capturing(void* stream) const {
  cuda::CaptureStatus status = cuda::CaptureStatus::None;
  const DriverResult result = functions_.StreamIsCapturing(cuda::to_stream(stream), &status);
  // The legacy stream, while a stream that synchronizes with it is capturing: this query is harmless, but using the
  // stream is not.
  if (result == DriverResult::CaptureImplicit) return true;
  if (result != DriverResult::Success) return failure("cuStreamIsCapturing", result);
  return status != cuda::CaptureStatus::None;
}

Status CudaApi::check_not_capturing(const char* what, void* stream) const {
  const Result<bool> recording = is_capturing(stream);
  if (!recording) return recording.error();
  if (!*recording) return {};
  return kiln::make_error(Code::Capturing, std::string("cannot ") + what +
                                               ": the stream is capturing a graph; do it before the capture starts");
}

ScopedRelaxedCapture::ScopedRelaxedCapture(const CudaApi& api)
    : api_(api),
      entered_(api.check("cuThreadExchangeStreamCaptureMode", api->ThreadExchangeStreamCaptureMode(&mode_))) {}

ScopedRelaxedCapture::~ScopedRelaxedCapture() {
  if (!entered_) return;
  // Retries once after a failure: a thread that stays in relaxed mode would no longer get errors for its own mistakes.
  cuda::CaptureMode before = mode_;
  if (api_->ThreadExchangeStreamCaptureMode(&before) == DriverResult::Success) return;
  before = mode_;
  api_->ThreadExchangeStreamCaptureMode(&before);
}

}  // namespace kiln
