// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_kernel.hpp"

#include <algorithm>
#include <utility>

#include "backends/argument_checks.hpp"
#include "backends/parameter_types.hpp"
#include "base/error.hpp"

namespace kiln {
namespace {

// Upper limit for the name and the type of a parameter, whose lengths the driver reports.
constexpr std::size_t kMaxParameterText = 4096;

}  // namespace

OpenClKernel::OpenClKernel(std::shared_ptr<const OpenClContextState> place, cl_kernel kernel, std::string name)
    : place_(std::move(place)), kernel_(kernel), name_(std::move(name)) {}

Result<std::shared_ptr<DeviceKernel>> OpenClKernel::take(std::shared_ptr<const OpenClContextState> place,
                                                         cl_kernel kernel, std::string name) {
  std::shared_ptr<OpenClKernel> taken(new OpenClKernel(std::move(place), kernel, std::move(name)));
  cl_uint count = 0;
  const cl_int error = taken->place_->cl().GetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr);
  if (error != CL_SUCCESS) return opencl_failure("clGetKernelInfo", error);
  taken->arguments_ = count;
  return std::shared_ptr<DeviceKernel>(std::move(taken));
}

OpenClKernel::~OpenClKernel() { place_->cl().ReleaseKernel(kernel_); }

Status OpenClKernel::check(const LaunchConfig& config) const {
  const auto lacks = [](const char* what) {
    return make_error(Code::Unsupported, std::string("OpenCL does not support ") + what);
  };
  if (config.shared_bytes != 0) return lacks("dynamic shared memory of a launch; pass LocalMemory as an argument");
  if (config.cluster.x != 0 || config.cluster.y != 0 || config.cluster.z != 0) return lacks("clusters of blocks");
  if (config.cooperative) return lacks("cooperative launch");
  if (config.programmatic) return lacks("programmatic launch");
  if (config.priority != 0) return lacks("priority of a launch");
  if (!config.attributes.empty()) return lacks("launch attributes");
  if (!is_queue(config.stream.native())) return make_error(Code::InvalidArgument, kNoDefaultStream);
  return check_sizes(config);
}

Status OpenClKernel::set_arguments(const Argument* arguments, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    // PoCL 3.1 terminates the process with an assertion for an argument of 0 bytes.
    const cl_int error = arguments[i].size == 0 ? CL_INVALID_ARG_SIZE
                                                : place_->cl().SetKernelArg(kernel_, static_cast<cl_uint>(i),
                                                                            arguments[i].size, arguments[i].data);
    if (error == CL_SUCCESS) continue;
    Error said = opencl_failure("clSetKernelArg", error);
    const KernelParameter parameter = ask_parameter(static_cast<cl_uint>(i));
    said.message = "argument " + std::to_string(i) + " of " + name_ +
                   (parameter.type.empty() ? "" : ", '" + parameter.type + " " + parameter.name + "',") + " with " +
                   std::to_string(arguments[i].size) + " bytes: " + said.message;
    return said;
  }
  return {};
}

Status OpenClKernel::launch(const LaunchConfig& config, const Argument* arguments, std::size_t count) {
  if (Status possible = check(config); !possible) return possible;
  if (Status right = check_argument_count(name_, arguments_, count); !right) return right;
  const std::size_t local[] = {config.block.x, config.block.y, config.block.z};
  const std::size_t global[] = {local[0] * config.grid.x, local[1] * config.grid.y, local[2] * config.grid.z};
  const MutexLock lock(mutex_);
  if (Status set = set_arguments(arguments, count); !set) return set;
  const cl_int error = place_->cl().EnqueueNDRangeKernel(static_cast<cl_command_queue>(config.stream.native()), kernel_,
                                                         3, nullptr, global, local, 0, nullptr, nullptr);
  if (error != CL_SUCCESS) return opencl_failure("clEnqueueNDRangeKernel", error);
  return {};
}

std::string OpenClKernel::parameter_text(cl_uint index, cl_kernel_arg_info what) const {
  std::size_t size = 0;
  if (place_->cl().GetKernelArgInfo(kernel_, index, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  if (size == 0 || size > kMaxParameterText) return {};
  std::string text(size, '\0');
  if (place_->cl().GetKernelArgInfo(kernel_, index, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  return text.c_str();  // without the NUL at its end
}

KernelParameter OpenClKernel::ask_parameter(cl_uint index) const {
  const std::string type = parameter_text(index, CL_KERNEL_ARG_TYPE_NAME);
  cl_kernel_arg_address_qualifier address = 0;
  const cl_int error =
      place_->cl().GetKernelArgInfo(kernel_, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof address, &address, nullptr);
  if (type.empty() || error != CL_SUCCESS) return {};
  KernelParameter parameter = parameter_of_type(type);
  parameter.name = parameter_text(index, CL_KERNEL_ARG_NAME);
  if (address == CL_KERNEL_ARG_ADDRESS_PRIVATE) return parameter;
  const bool local = address == CL_KERNEL_ARG_ADDRESS_LOCAL;
  parameter.type = (local ? "local " : address == CL_KERNEL_ARG_ADDRESS_CONSTANT ? "constant " : "global ") + type;
  // An image has an address space and no star.
  parameter.kind = local ? KernelParameter::Kind::LocalMemory : KernelParameter::Kind::Pointer;
  parameter.size = local ? 0 : sizeof(cl_mem);
  return parameter;
}

Result<std::shared_ptr<const KernelParameters>> OpenClKernel::parameters() {
  const MutexLock lock(mutex_);
  if (parameters_ == nullptr) {
    KernelParameters all;
    for (cl_uint i = 0; i < arguments_; ++i) all.push_back(ask_parameter(i));
    parameters_ = std::make_shared<const KernelParameters>(std::move(all));
  }
  return parameters_;
}

Result<Occupancy> OpenClKernel::occupancy(std::size_t shared_bytes) {
  const OpenClFunctions& cl = place_->cl();
  cl_device_id device = place_->devices().front();
  std::size_t maximum = 0;
  std::size_t multiple = 0;
  std::size_t required[3] = {0, 0, 0};
  cl_uint units = 0;
  cl_ulong local = 0;
  const auto of_kernel = [&](cl_kernel_work_group_info what, std::size_t size, void* value) {
    return cl.GetKernelWorkGroupInfo(kernel_, device, what, size, value, nullptr);
  };
  cl_int error = of_kernel(CL_KERNEL_WORK_GROUP_SIZE, sizeof maximum, &maximum);
  if (error == CL_SUCCESS) error = of_kernel(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, sizeof multiple, &multiple);
  if (error == CL_SUCCESS) error = of_kernel(CL_KERNEL_COMPILE_WORK_GROUP_SIZE, sizeof required, required);
  if (error == CL_SUCCESS) {
    error = cl.GetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr);
  }
  if (error == CL_SUCCESS) error = cl.GetDeviceInfo(device, CL_DEVICE_LOCAL_MEM_SIZE, sizeof local, &local, nullptr);
  if (error != CL_SUCCESS) return opencl_failure("querying the work group size of a kernel", error);
  if (shared_bytes > local) {
    return make_error(Code::InvalidArgument, "a work group of this device has " + std::to_string(local) +
                                                 " bytes of local memory, not " + std::to_string(shared_bytes));
  }
  std::size_t block = multiple != 0 && maximum >= multiple ? maximum - maximum % multiple : maximum;
  if (required[0] != 0) block = required[0] * required[1] * required[2];
  return Occupancy{static_cast<unsigned>(std::max<std::size_t>(block, 1)), std::max(units, 1U)};
}

}  // namespace kiln
