// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "backends/cuda/cuda_driver_abi.hpp"

namespace kiln {

/// The opened and initialized CUDA driver. Immutable and thread-safe.
class CudaApi {
 public:
  /// `path` is the path of libcuda; empty means the one that the dynamic loader finds. The error states what is missing
  /// and what to do.
  static Result<std::shared_ptr<const CudaApi>> open(const std::string& path);

  const cuda::DriverFunctions* operator->() const { return &functions_; }

  /// Looks up the functions on each call. Functions that this driver does not have are null.
  cuda::MemoryFunctions memory_functions() const;

  /// Converts the driver's result of the call `what` to an error: its name, its text and what to do.
  Error failure(const char* what, cuda::DriverResult result) const;
  Status check(const char* what, cuda::DriverResult result) const;

  /// Returns the id of the calling thread's current context. Ids are not reused. Returns Code::Unavailable if the
  /// thread has no context or a destroyed one.
  Result<unsigned long long> context_id() const;

  /// Returns true if the stream is capturing a graph, or if it is the legacy stream and cannot be used because another
  /// stream is capturing.
  Result<bool> is_capturing(void* stream) const;
  /// Returns Code::Capturing if the stream is capturing; `what` is the operation to name in the error.
  Status check_not_capturing(const char* what, void* stream) const;

 private:
  CudaApi() = default;
  cuda::GetProcAddress find_ = nullptr;
  cuda::DriverFunctions functions_;
};

/// Sets the calling thread's capture mode to relaxed for the lifetime of the object, so that its calls do not affect a
/// graph that another stream captures in any thread and mode. Otherwise the driver would reject loads and invalidate
/// the capture. Check `entered` first.
class ScopedRelaxedCapture {
 public:
  explicit ScopedRelaxedCapture(const CudaApi& api);
  ~ScopedRelaxedCapture();
  ScopedRelaxedCapture(const ScopedRelaxedCapture&) = delete;
  ScopedRelaxedCapture& operator=(const ScopedRelaxedCapture&) = delete;

  const Status& entered() const { return entered_; }

 private:
  const CudaApi& api_;
  cuda::CaptureMode mode_ = cuda::CaptureMode::Relaxed;
  Status entered_;
};

}  // namespace kiln
