// SPDX-License-Identifier: Apache-2.0
// Symbol lookup by name and version, and names of errors.
#include <dlfcn.h>

#include <string_view>

#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

struct Form {
  const char* name;
  int version;
  const char* symbol;
};

constexpr Form kForms[] = {
#include "support/fakes/cuda_driver/versions.inc"
};

/// Finds the newest form that both the caller's version and the driver's version have.
cuda::SymbolStatus find_form(const Model& model, std::string_view name, int version, const Form*& best) {
  bool known = false;
  for (const Form& form : kForms) {
    if (form.name != name || form.version > model.driver_version) continue;
    known = true;
    if (form.version <= version && (best == nullptr || form.version > best->version)) best = &form;
  }
  if (best != nullptr) return cuda::SymbolStatus::Found;
  return known ? cuda::SymbolStatus::VersionNotSufficient : cuda::SymbolStatus::NotFound;
}

struct Named {
  DriverResult error;
  const char* name;
  const char* text;
};

constexpr Named kErrors[] = {
    {DriverResult::Success, "CUDA_SUCCESS", "no error"},
    {DriverResult::InvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {DriverResult::OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {DriverResult::NotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "not initialized"},
    {DriverResult::Deinitialized, "CUDA_ERROR_DEINITIALIZED", "shutting down"},
    {DriverResult::StubLibrary, "CUDA_ERROR_STUB_LIBRARY", "a stub library instead of a driver"},
    {DriverResult::NoDevice, "CUDA_ERROR_NO_DEVICE", "no device"},
    {DriverResult::InvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device"},
    {DriverResult::InvalidImage, "CUDA_ERROR_INVALID_IMAGE", "not device code"},
    {DriverResult::InvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid context"},
    {DriverResult::NoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no code for this device"},
    {DriverResult::InvalidPtx, "CUDA_ERROR_INVALID_PTX", "PTX that does not compile"},
    {DriverResult::JitCompilerNotFound, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "no PTX compiler"},
    {DriverResult::UnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "PTX newer than the driver"},
    {DriverResult::InvalidSource, "CUDA_ERROR_INVALID_SOURCE", "invalid source"},
    {DriverResult::FileNotFound, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {DriverResult::OperatingSystem, "CUDA_ERROR_OPERATING_SYSTEM", "a system call failed"},
    {DriverResult::InvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid handle"},
    {DriverResult::IllegalState, "CUDA_ERROR_ILLEGAL_STATE", "not in this state"},
    {DriverResult::NotFound, "CUDA_ERROR_NOT_FOUND", "symbol not found"},
    {DriverResult::NotReady, "CUDA_ERROR_NOT_READY", "not ready"},
    {DriverResult::IllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS", "access to unallocated memory"},
    {DriverResult::LaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources for a launch"},
    {DriverResult::LaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel took too long"},
    {DriverResult::PrimaryContextActive, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the primary context is in use"},
    {DriverResult::ContextIsDestroyed, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context was destroyed"},
    {DriverResult::LaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"},
    {DriverResult::CooperativeLaunchTooLarge, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "more blocks than fit"},
    {DriverResult::NotPermitted, "CUDA_ERROR_NOT_PERMITTED", "not permitted"},
    {DriverResult::NotSupported, "CUDA_ERROR_NOT_SUPPORTED", "not supported"},
    {DriverResult::CaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not while a stream is capturing"},
    {DriverResult::CaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture was invalidated"},
    {DriverResult::CaptureMerge, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would merge"},
    {DriverResult::CaptureUnmatched, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture began on another stream"},
    {DriverResult::CaptureUnjoined, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "the capture has unjoined work"},
    {DriverResult::CaptureIsolation, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "a dependency across a capture"},
    {DriverResult::CaptureImplicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "a capture would wait for the legacy stream"},
    {DriverResult::CapturedEvent, "CUDA_ERROR_CAPTURED_EVENT", "the event was recorded in a capture"},
    {DriverResult::CaptureWrongThread, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "another thread began the capture"},
    {DriverResult::InvalidClusterSize, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "invalid cluster"},
    {DriverResult::Unknown, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Named* named(DriverResult error) {
  for (const Named& one : kErrors) {
    if (one.error == error) return &one;
  }
  return nullptr;
}

}  // namespace

extern "C" {

DriverResult cuGetProcAddress_v2(const char* name, void** function, int version, std::uint64_t,
                                 cuda::SymbolStatus* status) {
  return enter(
      "cuGetProcAddress",
      [&](Model& model) {
        if (name == nullptr || function == nullptr || version > model.driver_version) return DriverResult::InvalidValue;
        const Form* best = nullptr;
        const cuda::SymbolStatus found = find_form(model, name, version, best);
        *function = nullptr;
        if (status != nullptr) *status = found;
        if (best == nullptr) return DriverResult::Success;
        // By its address, because a search of the process may find another driver.
        Dl_info self;
        if (dladdr(reinterpret_cast<void*>(&cuGetProcAddress_v2), &self) == 0) return DriverResult::Unknown;
        void* const library = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
        if (library == nullptr) return DriverResult::Unknown;
        *function = dlsym(library, best->symbol);
        dlclose(library);
        return DriverResult::Success;
      },
      Before::Nothing);
}

DriverResult cuGetProcAddress(const char* name, void** function, int version, std::uint64_t flags) {
  cuda::SymbolStatus status = cuda::SymbolStatus::NotFound;
  const DriverResult result = cuGetProcAddress_v2(name, function, version, flags, &status);
  if (result != DriverResult::Success) return result;
  return status == cuda::SymbolStatus::Found ? result : DriverResult::NotFound;
}

DriverResult cuGetErrorName(DriverResult error, const char** name) {
  const Named* found = named(error);
  if (name != nullptr) *name = found != nullptr ? found->name : nullptr;
  return found != nullptr ? DriverResult::Success : DriverResult::InvalidValue;
}

DriverResult cuGetErrorString(DriverResult error, const char** text) {
  const Named* found = named(error);
  if (text != nullptr) *text = found != nullptr ? found->text : nullptr;
  return found != nullptr ? DriverResult::Success : DriverResult::InvalidValue;
}

}  // extern "C"

}  // namespace kiln::test::driver
