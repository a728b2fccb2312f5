#include "device/cuda_api.hpp"

#include <type_traits>
#include <utility>

#include "base/dynamic_library.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

using cuda::DriverResult;

constexpr const char* kLibrary = "libcuda.so.1";

struct Meaning {
  DriverResult result;
  Code code;
  const char* advice;  // what to do, behind the driver's own text; empty where that says it
};

// What is not here is something that the machine could not do: Code::Unavailable.
constexpr Meaning kMeanings[] = {
    {DriverResult::InvalidValue, Code::InvalidArgument, ""},
    {DriverResult::InvalidDevice, Code::InvalidArgument, ""},
    {DriverResult::InvalidHandle, Code::InvalidArgument, "is the stream one of the current context?"},
    {DriverResult::NotFound, Code::InvalidArgument, ""},
    {DriverResult::LaunchOutOfResources, Code::InvalidArgument, "launch smaller blocks or less shared memory"},
    {DriverResult::CooperativeLaunchTooLarge, Code::InvalidArgument, "launch no more blocks than run at once"},
    {DriverResult::InvalidClusterSize, Code::InvalidArgument, ""},
    {DriverResult::NotSupported, Code::Unsupported, ""},
    {DriverResult::NotPermitted, Code::Unsupported, ""},
    {DriverResult::InvalidImage, Code::LoadRefused, ""},
    {DriverResult::NoBinaryForGpu, Code::LoadRefused, "compile it for this device's architecture"},
    {DriverResult::InvalidPtx, Code::LoadRefused, ""},
    {DriverResult::JitCompilerNotFound, Code::LoadRefused, "compile it to machine code"},
    {DriverResult::UnsupportedPtxVersion, Code::LoadRefused,
     "compile it to machine code, or install a driver as new as the compiler"},
    {DriverResult::InvalidSource, Code::LoadRefused, ""},
    {DriverResult::FileNotFound, Code::LoadRefused, ""},
    {DriverResult::NoDevice, Code::Unavailable, "is a GPU visible (CUDA_VISIBLE_DEVICES, nvidia-smi)?"},
    {DriverResult::StubLibrary, Code::Unavailable, "this is the toolkit's stub: take it off the library path"},
    {DriverResult::NotInitialized, Code::Unavailable, "a forked child cannot use its parent's driver"},
    {DriverResult::InvalidContext, Code::Unavailable, "make a context current in this thread"},
    {DriverResult::ContextIsDestroyed, Code::Unavailable, "make a context current that lives"},
};

bool is_capture_result(DriverResult result) {
  return result >= DriverResult::CaptureUnsupported && result <= DriverResult::CaptureWrongThread;
}

Meaning meaning_of(DriverResult result) {
  if (is_capture_result(result)) return {result, Code::Capturing, "do it before the graph is recorded"};
  for (const Meaning& meaning : kMeanings) {
    if (meaning.result == result) return meaning;
  }
  return {result, Code::Unavailable, ""};
}

/// Sets what the driver has of a table's functions; returns the name of one that it has not.
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
    return kiln::failure(Code::Unavailable, library.error().message + "; install NVIDIA's driver, or name its library");
  }
  std::shared_ptr<CudaApi> api(new CudaApi);
  const bool found = library->bind(api->find_, cuda::kGetProcAddressSymbol);
  const std::string missing = found ? bind(api->find_, api->functions_) : cuda::kGetProcAddressSymbol;
  if (!missing.empty()) {
    return kiln::failure(Code::Unsupported,
                         name + " has no " + missing + ": kiln needs the driver of CUDA 12.4 or newer; install one");
  }
  if (Status begun = api->judge("cuInit", api->functions_.Init(0)); !begun) return std::move(begun).error();
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
  const Meaning meaning = meaning_of(result);
  std::string message = std::string(what) + " failed with " + (name != nullptr ? name : "an unknown error") + " (" +
                        std::to_string(static_cast<int>(result)) + ")";
  if (text != nullptr) message.append(": ").append(text);
  if (*meaning.advice != '\0') message.append("; ").append(meaning.advice);
  return kiln::failure(meaning.code, std::move(message));
}

Status CudaApi::judge(const char* what, DriverResult result) const {
  if (result == DriverResult::Success) return {};
  return failure(what, result);
}

Result<unsigned long long> CudaApi::context_id() const {
  unsigned long long id = 0;
  const DriverResult result = functions_.CtxGetId(nullptr, &id);
  if (result == DriverResult::InvalidContext) {
    return kiln::failure(
        Code::Unavailable,
        "this thread has no current CUDA context: make one current, or ask for a device's primary one");
  }
  if (result != DriverResult::Success) return failure("cuCtxGetId", result);
  return id;
}

Result<bool> CudaApi::capturing(void* stream) const {
  cuda::CaptureStatus status = cuda::CaptureStatus::None;
  const DriverResult result = functions_.StreamIsCapturing(cuda::stream_of(stream), &status);
  // The legacy stream, while a stream records that waits for it: asking does no harm, using it would.
  if (result == DriverResult::CaptureImplicit) return true;
  if (result != DriverResult::Success) return failure("cuStreamIsCapturing", result);
  return status != cuda::CaptureStatus::None;
}

Status CudaApi::refuse_capturing(const char* what, void* stream) const {
  const Result<bool> recording = capturing(stream);
  if (!recording) return recording.error();
  if (!*recording) return {};
  return kiln::failure(Code::Capturing, std::string("the stream records a graph, and this would ") + what +
                                            ": do it before the recording begins");
}

RelaxedCapture::RelaxedCapture(const CudaApi& api)
    : api_(api),
      entered_(api.judge("cuThreadExchangeStreamCaptureMode", api->ThreadExchangeStreamCaptureMode(&mode_))) {}

RelaxedCapture::~RelaxedCapture() {
  if (!entered_) return;
  // A thread that stayed relaxed would no longer be told of its own mistakes, so one failure is not taken for an
  // answer.
  cuda::CaptureMode before = mode_;
  if (api_->ThreadExchangeStreamCaptureMode(&before) == DriverResult::Success) return;
  before = mode_;
  api_->ThreadExchangeStreamCaptureMode(&before);
}

}  // namespace kiln
