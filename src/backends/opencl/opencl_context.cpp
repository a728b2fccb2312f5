// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_context.hpp"

#include <atomic>
#include <utility>

#include "base/error.hpp"

namespace kiln {
namespace {

// Ids must be unique in the process, across all device objects.
std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

OpenClContextState::OpenClContextState(std::shared_ptr<const OpenClLibrary> library, cl_context context, bool own,
                                       std::vector<cl_device_id> devices, Target target)
    : library_(std::move(library)), context_(context), own_(own), devices_(std::move(devices)),
      target_(std::move(target)), id_(next_id()) {}

OpenClContextState::~OpenClContextState() {
  if (own_) cl().ReleaseContext(context_);
}

Result<std::shared_ptr<const OpenClContextState>> OpenClContextState::make(std::shared_ptr<const OpenClLibrary> library,
                                                                           std::vector<cl_device_id> devices,
                                                                           Target target) {
  cl_int error = CL_SUCCESS;
  cl_context context = library->functions().CreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(),
                                                          nullptr, nullptr, &error);
  if (context == nullptr) return opencl_failure("clCreateContext", error);
  return std::shared_ptr<const OpenClContextState>(
      new OpenClContextState(std::move(library), context, true, std::move(devices), std::move(target)));
}

std::shared_ptr<const OpenClContextState> OpenClContextState::of(std::shared_ptr<const OpenClLibrary> library,
                                                                 cl_context context, cl_device_id device,
                                                                 Target target) {
  return std::shared_ptr<const OpenClContextState>(
      new OpenClContextState(std::move(library), context, false, {device}, std::move(target)));
}

Error opencl_failure(const char* what, cl_int error) {
  // According to the specification, codes at or below this one are mistakes of the caller; those above are failures of
  // the machine.
  const Code code = error <= CL_INVALID_VALUE ? Code::InvalidArgument : Code::Unavailable;
  return make_error(code, std::string(what) + " failed with " + opencl_error_text(error));
}

}  // namespace kiln
