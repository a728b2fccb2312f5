#include "device/opencl_kernel.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "device/checks.hpp"

namespace kiln {

OpenClKernel::OpenClKernel(std::shared_ptr<const OpenClPlace> place, cl_kernel kernel, std::string name)
    : place_(std::move(place)), kernel_(kernel), name_(std::move(name)) {}

Result<std::shared_ptr<DeviceKernel>> OpenClKernel::take(std::shared_ptr<const OpenClPlace> place, cl_kernel kernel,
                                                         std::string name) {
  std::shared_ptr<OpenClKernel> taken(new OpenClKernel(std::move(place), kernel, std::move(name)));
  cl_uint count = 0;
  const cl_int error = taken->place_->cl().GetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr);
  if (error != CL_SUCCESS) return opencl_failure("clGetKernelInfo", error);
  taken->arguments_ = count;
  return std::shared_ptr<DeviceKernel>(std::move(taken));
}

OpenClKernel::~OpenClKernel() { place_->cl().ReleaseKernel(kernel_); }

Status OpenClKernel::check(const Launch& how) const {
  const auto lacks = [](const char* what) { return failure(Code::Unsupported, std::string("OpenCL has no ") + what); };
  if (how.shared_bytes != 0) return lacks("dynamic shared memory of a launch: give LocalMemory as an argument");
  if (how.cluster.x != 0 || how.cluster.y != 0 || how.cluster.z != 0) return lacks("clusters of blocks");
  if (how.cooperative) return lacks("cooperative launch");
  if (how.programmatic) return lacks("programmatic launch");
  if (how.priority != 0) return lacks("priority of a launch");
  if (!how.attributes.empty()) return lacks("launch attributes");
  if (how.stream == nullptr) return failure(Code::InvalidArgument, kNoDefaultStream);
  return check_sizes(how);
}

Status OpenClKernel::set_arguments(const Argument* arguments, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    // PoCL 3.1 ends the process by an assertion when it is given an argument of no bytes.
    const cl_int error = arguments[i].size == 0 ? CL_INVALID_ARG_SIZE
                                                : place_->cl().SetKernelArg(kernel_, static_cast<cl_uint>(i),
                                                                            arguments[i].size, arguments[i].data);
    if (error == CL_SUCCESS) continue;
    Error said = opencl_failure("clSetKernelArg", error);
    said.message = "argument " + std::to_string(i) + " of " + name_ + " with " + std::to_string(arguments[i].size) +
                   " bytes: " + said.message;
    return said;
  }
  return {};
}

Status OpenClKernel::launch(const Launch& how, const Argument* arguments, std::size_t count) {
  if (Status possible = check(how); !possible) return possible;
  if (Status right = check_argument_count(name_, arguments_, count); !right) return right;
  const std::size_t local[] = {how.block.x, how.block.y, how.block.z};
  const std::size_t global[] = {local[0] * how.grid.x, local[1] * how.grid.y, local[2] * how.grid.z};
  const MutexLock lock(mutex_);
  if (Status set = set_arguments(arguments, count); !set) return set;
  const cl_int error = place_->cl().EnqueueNDRangeKernel(static_cast<cl_command_queue>(how.stream), kernel_, 3, nullptr,
                                                         global, local, 0, nullptr, nullptr);
  if (error != CL_SUCCESS) return opencl_failure("clEnqueueNDRangeKernel", error);
  return {};
}

Result<Occupancy> OpenClKernel::occupancy(std::size_t shared_bytes) {
  const OpenClFunctions& cl = place_->cl();
  cl_device_id device = place_->devices().front();
  std::size_t most = 0;
  std::size_t multiple = 0;
  std::size_t required[3] = {0, 0, 0};
  cl_uint units = 0;
  cl_ulong local = 0;
  const auto of_kernel = [&](cl_kernel_work_group_info what, std::size_t size, void* value) {
    return cl.GetKernelWorkGroupInfo(kernel_, device, what, size, value, nullptr);
  };
  cl_int error = of_kernel(CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most);
  if (error == CL_SUCCESS) error = of_kernel(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof multiple, &multiple);
  if (error == CL_SUCCESS) error = of_kernel(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required, required);
  if (error == CL_SUCCESS) {
    error = cl.GetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr);
  }
  if (error == CL_SUCCESS) error = cl.GetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, nullptr);
  if (error != CL_SUCCESS) return opencl_failure("asking for the work group size of a kernel", error);
  if (shared_bytes > local) {
    return failure(Code::InvalidArgument, "a work group of this device has " + std::to_string(local) +
                                              " bytes of local memory, not " + std::to_string(shared_bytes));
  }
  std::size_t block = multiple != 0 && most >= multiple ? most - most % multiple : most;
  if (required[0] != 0) block = required[0] * required[1] * required[2];
  return Occupancy{static_cast<unsigned>(std::max<std::size_t>(block, 1)), std::max(units, 1U)};
}

}  // namespace kiln
