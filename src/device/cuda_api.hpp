#pragma once

#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "device/cuda_driver.hpp"

namespace kiln {

/// The CUDA driver, opened and initialised. Immutable: any thread.
class CudaApi {
 public:
  /// `path` is that of libcuda, empty for the one that the loader finds. An error says what is missing and what to do.
  static Result<std::shared_ptr<const CudaApi>> open(const std::string& path);

  const cuda::DriverFunctions* operator->() const { return &functions_; }

  /// Looked up by each call; those that this driver does not have are null.
  cuda::MemoryFunctions memory_functions() const;

  /// What the driver's answer to `what` is to the caller: its name, its text and what to do.
  Error failure(const char* what, cuda::DriverResult result) const;
  Status judge(const char* what, cuda::DriverResult result) const;

  /// The id of the calling thread's current context, which is never used for another. Code::Unavailable where the
  /// thread has none, or one that was destroyed.
  Result<unsigned long long> context_id() const;

  /// Whether the stream records a graph, or may not be used because another stream does: the legacy stream.
  Result<bool> capturing(void* stream) const;
  /// Code::Capturing where it does; `what` says what would have had to be done.
  Status refuse_capturing(const char* what, void* stream) const;

 private:
  CudaApi() = default;
  cuda::GetProcAddress find_ = nullptr;
  cuda::DriverFunctions functions_;
};

/// While it lives, what the calling thread does is no danger to a graph that another stream records, in whichever
/// thread and mode: the driver would refuse loads, and end the recording for whoever makes it. Ask `entered` first.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const CudaApi& api);
  ~RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  const Status& entered() const { return entered_; }

 private:
  const CudaApi& api_;
  cuda::CaptureMode mode_ = cuda::CaptureMode::Relaxed;
  Status entered_;
};

}  // namespace kiln
