// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "backends/opencl/opencl_library.hpp"

namespace kiln {

/// An OpenCL context and those of its devices that have one target: a program built for one of them serves all. The
/// device and all loaded modules share it. Immutable and thread-safe.
class OpenClContextState {
 public:
  /// Creates a context for these devices.
  static Result<std::shared_ptr<const OpenClContextState>> make(std::shared_ptr<const OpenClLibrary> library,
                                                                std::vector<cl_device_id> devices, Target target);
  /// Wraps the caller's context, which the caller keeps alive.
  static std::shared_ptr<const OpenClContextState> of(std::shared_ptr<const OpenClLibrary> library, cl_context context,
                                                      cl_device_id device, Target target);
  ~OpenClContextState();
  OpenClContextState(const OpenClContextState&) = delete;
  OpenClContextState& operator=(const OpenClContextState&) = delete;

  const OpenClFunctions& cl() const { return library_->functions(); }
  bool pocl_cache_is_off() const { return library_->pocl_cache_is_off(); }
  cl_context context() const { return context_; }
  const std::vector<cl_device_id>& devices() const { return devices_; }
  const Target& target() const { return target_; }
  /// Returns an id that is unique in the process.
  std::uint64_t id() const { return id_; }

 private:
  OpenClContextState(std::shared_ptr<const OpenClLibrary> library, cl_context context, bool own,
                     std::vector<cl_device_id> devices, Target target);

  const std::shared_ptr<const OpenClLibrary> library_;
  const cl_context context_;
  const bool own_;
  const std::vector<cl_device_id> devices_;
  const Target target_;
  const std::uint64_t id_;
};

inline constexpr const char* kNoDefaultStream = "OpenCL has no default stream; pass a queue";
/// Returns false for a null pointer and for the numbers that stand for CUDA's default streams (1 and 2).
inline bool is_queue(const void* stream) { return reinterpret_cast<std::uintptr_t>(stream) > 2; }
/// Converts a failed call to an error: an invalid argument of the caller, or an unavailable resource.
Error opencl_failure(const char* what, cl_int error);

}  // namespace kiln
