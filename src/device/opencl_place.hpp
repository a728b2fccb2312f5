#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "vendor/opencl_library.hpp"

namespace kiln {

/// An OpenCL context and those of its devices that have one target: what is built for one of them serves all. Shared by
/// the device and by whatever was loaded; immutable, any thread.
class OpenClPlace {
 public:
  /// A context of kiln's own for these devices.
  static Result<std::shared_ptr<const OpenClPlace>> make(std::shared_ptr<const OpenClLibrary> library,
                                                         std::vector<cl_device_id> devices, Target target);
  /// The caller's, who keeps it alive.
  static std::shared_ptr<const OpenClPlace> of(std::shared_ptr<const OpenClLibrary> library, cl_context context,
                                               cl_device_id device, Target target);
  ~OpenClPlace();
  OpenClPlace(const OpenClPlace&) = delete;
  OpenClPlace& operator=(const OpenClPlace&) = delete;

  const OpenClFunctions& cl() const { return library_->functions(); }
  bool pocl_cache_is_off() const { return library_->pocl_cache_is_off(); }
  cl_context context() const { return context_; }
  const std::vector<cl_device_id>& devices() const { return devices_; }
  const Target& target() const { return target_; }
  /// Another for every place of the process.
  std::uint64_t id() const { return id_; }

 private:
  OpenClPlace(std::shared_ptr<const OpenClLibrary> library, cl_context context, bool own,
              std::vector<cl_device_id> devices, Target target);

  const std::shared_ptr<const OpenClLibrary> library_;
  const cl_context context_;
  const bool own_;
  const std::vector<cl_device_id> devices_;
  const Target target_;
  const std::uint64_t id_;
};

inline constexpr const char* kNoDefaultStream = "OpenCL has no default stream: give a queue";
/// What a call that failed means to the caller: a mistake of his, or something that is not to be had.
Error opencl_failure(const char* what, cl_int error);

}  // namespace kiln
