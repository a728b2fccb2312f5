#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "base/dynamic_library.hpp"

namespace kiln {

/// An OpenCL device of this machine, as far as compiling and people are concerned. A value.
struct OpenClDeviceInfo {
  Target target;  ///< the same for devices of one platform that have one name: what is built for one serves the other
  std::string platform;
  std::string platform_version;
  std::string driver;
  std::string device;
  std::string device_version;
  unsigned compute_units = 0;
  bool gpu = false;
};

/// The OpenCL functions that kiln calls, by their own names.
struct OpenClFunctions {
  decltype(&clGetPlatformIDs) GetPlatformIDs = nullptr;
  decltype(&clGetPlatformInfo) GetPlatformInfo = nullptr;
  decltype(&clGetDeviceIDs) GetDeviceIDs = nullptr;
  decltype(&clGetDeviceInfo) GetDeviceInfo = nullptr;
  decltype(&clCreateContext) CreateContext = nullptr;
  decltype(&clReleaseContext) ReleaseContext = nullptr;
  decltype(&clCreateProgramWithSource) CreateProgramWithSource = nullptr;
  decltype(&clCreateProgramWithBinary) CreateProgramWithBinary = nullptr;
  decltype(&clReleaseProgram) ReleaseProgram = nullptr;
  decltype(&clBuildProgram) BuildProgram = nullptr;
  decltype(&clCompileProgram) CompileProgram = nullptr;
  decltype(&clLinkProgram) LinkProgram = nullptr;
  decltype(&clGetProgramInfo) GetProgramInfo = nullptr;
  decltype(&clGetProgramBuildInfo) GetProgramBuildInfo = nullptr;
  decltype(&clCreateKernel) CreateKernel = nullptr;
  decltype(&clReleaseKernel) ReleaseKernel = nullptr;
  decltype(&clGetKernelInfo) GetKernelInfo = nullptr;
  decltype(&clGetKernelWorkGroupInfo) GetKernelWorkGroupInfo = nullptr;
  decltype(&clSetKernelArg) SetKernelArg = nullptr;
  decltype(&clCreateCommandQueue) CreateCommandQueue = nullptr;
  decltype(&clReleaseCommandQueue) ReleaseCommandQueue = nullptr;
  decltype(&clFinish) Finish = nullptr;
  decltype(&clCreateBuffer) CreateBuffer = nullptr;
  decltype(&clReleaseMemObject) ReleaseMemObject = nullptr;
  decltype(&clEnqueueReadBuffer) EnqueueReadBuffer = nullptr;
  decltype(&clEnqueueWriteBuffer) EnqueueWriteBuffer = nullptr;
  decltype(&clEnqueueNDRangeKernel) EnqueueNDRangeKernel = nullptr;
};

/// `CL_INVALID_BINARY (-42)`: the name where it is a usual one, and the number.
std::string opencl_error_text(cl_int error);

/// What the compiler printed when it built a program for a device.
std::string opencl_build_log(const OpenClFunctions& cl, cl_program program, cl_device_id device);

/// The ICD loader, opened, and the devices behind it. Immutable: any thread.
class OpenClLibrary {
 public:
  struct Device {
    OpenClDeviceInfo info;
    cl_device_id id = nullptr;
  };

  /// Opens libOpenCL and asks its platforms, which opens their drivers. An error where no driver is installed, told
  /// from the ICD files alone, or where there is no device.
  ///
  /// PoCL keeps a kernel cache of its own, which would take the place of compiles that kiln measures, and asks
  /// POCL_KERNEL_CACHE once, when devices are first listed. Where nobody has set it and no OpenCL library is in the
  /// process yet, it is set to 0 for as long as that takes and removed again. Changing the environment of a host
  /// program is rude, and not safe beside a thread that reads it; this is the one place, and only machines with an
  /// OpenCL driver come here. A program that opened OpenCL before kiln keeps PoCL's cache: correct, and its hits are
  /// not kiln's.
  static Result<std::shared_ptr<const OpenClLibrary>> open();

  /// The default device first (the first GPU, else the first), then as the platforms list them.
  const std::vector<Device>& devices() const { return devices_; }
  /// A device that somebody else found, or a part of one.
  Device describe(cl_device_id device) const;
  const OpenClFunctions& functions() const { return functions_; }
  const std::string& path() const { return path_; }
  /// Whether PoCL, if it is here, keeps nothing: it then removes the folder of a program with the program.
  bool pocl_cache_is_off() const { return pocl_cache_is_off_; }

 private:
  OpenClLibrary() = default;
  Status bind(const DynamicLibrary& library);
  Status list_devices();

  OpenClFunctions functions_;
  std::vector<Device> devices_;
  std::string path_;
  bool pocl_cache_is_off_ = false;
};

/// Whether an OpenCL driver is installed, decided by the ICD files and without opening anything; why not otherwise.
Status opencl_installed();

/// The OpenCL devices of this machine, the default one first.
Result<std::vector<OpenClDeviceInfo>> opencl_devices();

}  // namespace kiln
