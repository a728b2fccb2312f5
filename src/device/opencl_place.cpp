#include "device/opencl_place.hpp"

#include <atomic>
#include <utility>

#include "base/error.hpp"

namespace kiln {
namespace {

// Numbers must differ between all places of the process, whichever device object made them.
std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

OpenClPlace::OpenClPlace(std::shared_ptr<const OpenClLibrary> library, cl_context context, bool own,
                         std::vector<cl_device_id> devices, Target target)
    : library_(std::move(library)), context_(context), own_(own), devices_(std::move(devices)),
      target_(std::move(target)), id_(next_id()) {}

OpenClPlace::~OpenClPlace() {
  if (own_) cl().ReleaseContext(context_);
}

Result<std::shared_ptr<const OpenClPlace>> OpenClPlace::make(std::shared_ptr<const OpenClLibrary> library,
                                                             std::vector<cl_device_id> devices, Target target) {
  cl_int error = CL_SUCCESS;
  cl_context context = library->functions().CreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(),
                                                          nullptr, nullptr, &error);
  if (context == nullptr) return opencl_failure("clCreateContext", error);
  return std::shared_ptr<const OpenClPlace>(
      new OpenClPlace(std::move(library), context, true, std::move(devices), std::move(target)));
}

std::shared_ptr<const OpenClPlace> OpenClPlace::of(std::shared_ptr<const OpenClLibrary> library, cl_context context,
                                                   cl_device_id device, Target target) {
  return std::shared_ptr<const OpenClPlace>(
      new OpenClPlace(std::move(library), context, false, {device}, std::move(target)));
}

Error opencl_failure(const char* what, cl_int error) {
  // From here down the specification has the caller's mistakes; above, what the machine lacks.
  const Code code = error <= CL_INVALID_VALUE ? Code::InvalidArgument : Code::Unavailable;
  return failure(code, std::string(what) + " failed with " + opencl_error_text(error));
}

}  // namespace kiln
