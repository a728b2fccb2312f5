// SPDX-License-Identifier: Apache-2.0
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>
#include <vector>

#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "base/process/dynamic_library.hpp"

namespace kiln {

/// An OpenCL device of this machine, with the properties for compiling and for display. A value type.
struct OpenClDeviceInfo {
  Target target;  ///< the same for devices of one platform with the same name: a program for one serves the other
  std::string platform;
  std::string platform_version;
  std::string driver;
  std::string device;
  std::string device_version;
  unsigned compute_units = 0;
  bool gpu = false;
  bool cpu = false;  ///< a CPU, as with PoCL
};

/// The OpenCL functions that kiln calls, by their names.
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
  decltype(&clGetKernelArgInfo) GetKernelArgInfo = nullptr;
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

/// Returns `CL_INVALID_BINARY (-42)`: the name, if it is a common one, and the number.
std::string opencl_error_text(cl_int error);

/// Returns the compiler's output for a program and a device.
std::string opencl_build_log(const OpenClFunctions& cl, cl_program program, cl_device_id device);

/// The opened ICD loader and its devices. Immutable and thread-safe.
class OpenClLibrary {
 public:
  struct Device {
    OpenClDeviceInfo info;
    cl_device_id id = nullptr;
  };

  /// Opens libOpenCL and queries its platforms, which opens their drivers. Returns an error if no driver is installed,
  /// according to the ICD files, or if there is no device.
  ///
  /// PoCL has a kernel cache, which would replace compiles that kiln measures. It reads POCL_KERNEL_CACHE once, when
  /// devices are first listed. If the variable is not set and no OpenCL library is loaded in the process yet, this
  /// function sets it to 0 for the duration of the call. Changing the environment of a host program is undesirable, and
  /// unsafe while another thread reads it. This is the only function that does so, and only on machines with an OpenCL
  /// driver. A program that opened OpenCL before kiln keeps PoCL's cache: results are correct, but its hits are not
  /// kiln's.
  static Result<std::shared_ptr<const OpenClLibrary>> open();

  /// Returns the default device first (the first GPU, or the first device), then the others in the order of the
  /// platforms.
  const std::vector<Device>& devices() const { return devices_; }
  /// Describes a device that the caller found, or a sub-device.
  Device describe(cl_device_id device) const;
  const OpenClFunctions& functions() const { return functions_; }
  const std::string& path() const { return path_; }
  /// Returns true if PoCL's cache is disabled: PoCL then removes the directory of a program with the program.
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

/// Checks by the ICD files whether an OpenCL driver is installed, without opening it. The error gives the reason.
Status opencl_installed();
/// Returns true if PoCL is the only OpenCL driver that the loader would open, based on its ICD files. PoCL's devices
/// are CPUs unless it was built for others. Opens no library.
bool opencl_is_pocl_only();

/// Returns the OpenCL devices of this machine, the default one first.
Result<std::vector<OpenClDeviceInfo>> opencl_devices();

}  // namespace kiln
