// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_library.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/mutex.hpp"
#include "base/process/environment.hpp"
#include "base/process/process_lifecycle.hpp"

namespace kiln {
namespace {

constexpr const char* kLibrary = "libOpenCL.so.1";
constexpr const char* kVendors = "/etc/OpenCL/vendors";
constexpr const char* kPoclCache = "POCL_KERNEL_CACHE";

constexpr std::uint64_t kMaxIcdBytes = 4096;

// Returns where the loaders search for drivers: usually a directory with ICD files.
std::string vendor_place() {
  const auto named = environment_variable("OCL_ICD_VENDORS");
  const auto other = named ? named : environment_variable("OPENCL_VENDOR_PATH");
  return other && !other->empty() ? *other : kVendors;
}

// Returns the paths of the ICD files of a directory.
std::vector<std::string> icd_files(const std::string& directory) {
  std::vector<std::string> paths;
  for (const std::string& name : list_directory(AT_FDCWD, directory.c_str())) {
    if (name.ends_with(".icd")) paths.push_back(directory + "/" + name);
  }
  return paths;
}

bool is_pocl(std::string_view library) { return library.substr(library.rfind('/') + 1).starts_with("libpocl"); }

// Returns true if the ICD file names PoCL's library.
bool is_icd_of_pocl(const std::string& path) {
  const std::optional<FileStamp> stamp = stamp_of(path.c_str());
  if (!stamp || stamp->size > kMaxIcdBytes) return false;
  const Result<std::optional<Bytes>> bytes = read_file(path);
  return bytes && *bytes && is_pocl((*bytes)->view());
}

bool opencl_is_mapped() {
  const std::vector<std::string> paths = mapped_libraries();
  return std::any_of(paths.begin(), paths.end(), [](const std::string& path) {
    return path.find("/libOpenCL.so") != std::string::npos || path.find("/libpocl") != std::string::npos;
  });
}

// See OpenClLibrary::open.
class ScopedPoclCacheDisable {
 public:
  ScopedPoclCacheDisable() : set_(std::getenv(kPoclCache) == nullptr && !opencl_is_mapped()) {
    if (set_) setenv(kPoclCache, "0", 1);
  }
  ~ScopedPoclCacheDisable() {
    if (set_) unsetenv(kPoclCache);
  }
  bool in_force() const { return environment_variable(kPoclCache) == "0"; }
  ScopedPoclCacheDisable(const ScopedPoclCacheDisable&) = delete;
  ScopedPoclCacheDisable& operator=(const ScopedPoclCacheDisable&) = delete;

 private:
  const bool set_;
};

// Returns the text of an info function, up to its terminating zero; empty if it fails.
template <class Ask>
std::string whole_text_of(Ask ask) {
  std::size_t size = 0;
  if (ask(0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (ask(size, text.data(), nullptr) != CL_SUCCESS) return {};
  return text.c_str();
}

// Returns the same without surrounding blanks.
template <class Ask>
std::string text_of(Ask ask) {
  const std::string text = whole_text_of(ask);
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

// "NVIDIA CUDA" → "nvidia-cuda"; PoCL gets its common name.
std::string short_platform(const std::string& platform) {
  if (platform == "Portable Computing Language") return "pocl";
  std::string out;
  for (const char c : platform) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  return out;
}

OpenClLibrary::Device description(const OpenClFunctions& cl, cl_platform_id platform, cl_device_id device) {
  const auto of_platform = [&](cl_platform_info what) {
    return text_of([&](auto... arguments) { return cl.GetPlatformInfo(platform, what, arguments...); });
  };
  const auto of_device = [&](cl_device_info what) {
    return text_of([&](auto... arguments) { return cl.GetDeviceInfo(device, what, arguments...); });
  };
  OpenClDeviceInfo info;
  info.platform = of_platform(CL_PLATFORM_NAME);
  info.platform_version = of_platform(CL_PLATFORM_VERSION);
  info.driver = of_device(CL_DRIVER_VERSION);
  info.device = of_device(CL_DEVICE_NAME);
  info.device_version = of_device(CL_DEVICE_VERSION);
  info.target = Target::opencl(short_platform(info.platform) + ":" + info.device);
  cl_uint units = 0;
  cl_device_type type = 0;
  cl.GetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr);
  cl.GetDeviceInfo(device, CL_DEVICE_TYPE, sizeof type, &type, nullptr);
  info.compute_units = units;
  info.gpu = (type & CL_DEVICE_TYPE_GPU) != 0;
  info.cpu = !info.gpu && (type & CL_DEVICE_TYPE_ACCELERATOR) == 0 && (type & CL_DEVICE_TYPE_CPU) != 0;
  return {std::move(info), device};
}

}  // namespace

std::string opencl_build_log(const OpenClFunctions& cl, cl_program program, cl_device_id device) {
  return whole_text_of(
      [&](auto... arguments) { return cl.GetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, arguments...); });
}

Status opencl_installed() {
  const std::string place = vendor_place();
  struct stat status;
  const bool there = stat(place.c_str(), &status) == 0;
  // The loaders accept a directory here. ocl-icd also accepts an ICD file or the name of a driver that the dynamic
  // linker finds.
  if (there && S_ISDIR(status.st_mode) ? !icd_files(place).empty() : there || place.find('/') == std::string::npos)
    return {};
  return make_error(Code::Unavailable, "no OpenCL driver is installed: no .icd file in " + place +
                                           "; install the device vendor's OpenCL driver, or PoCL to use the CPU");
}

bool opencl_is_pocl_only() {
  // Further drivers of the loaders, and devices of PoCL that can be GPUs.
  for (const char* variable : {"OCL_ICD_FILENAMES", "POCL_DEVICES"}) {
    if (const auto value = environment_variable(variable); value && !value->empty()) return false;
  }
  const std::string place = vendor_place();
  if (!exists(place)) return is_pocl(place);
  if (!is_directory(place)) return is_icd_of_pocl(place);
  const std::vector<std::string> files = icd_files(place);
  return !files.empty() && std::all_of(files.begin(), files.end(), is_icd_of_pocl);
}

Result<std::shared_ptr<const OpenClLibrary>> OpenClLibrary::open() {
  if (Status installed = opencl_installed(); !installed) return std::move(installed).error();
  static ForkGuard opened_once;
  if (Status fresh = opened_once.check(kLibrary); !fresh) return std::move(fresh).error();
  // The environment is shared by the process, and so is this mutex.
  static Mutex environment;
  const MutexLock lock(environment);
  const ScopedPoclCacheDisable pocl_cache_off;
  const Result<DynamicLibrary> library = DynamicLibrary::open(kLibrary);
  if (!library) return library.error();
  std::shared_ptr<OpenClLibrary> opened(new OpenClLibrary);
  if (Status bound = opened->bind(*library); !bound) return std::move(bound).error();
  if (Status listed = opened->list_devices(); !listed) return std::move(listed).error();
  reregister_exit_handler();  // the loader has opened the drivers
  // PoCL reads the variable only once, so that a later call cannot determine its value.
  static bool was_off = false;
  was_off = was_off || pocl_cache_off.in_force();
  opened->pocl_cache_is_off_ = was_off;
  return std::shared_ptr<const OpenClLibrary>(std::move(opened));
}

Status OpenClLibrary::bind(const DynamicLibrary& library) {
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    if (!library.bind(function, name)) missing = name;
  };
  find(functions_.GetPlatformIDs, "clGetPlatformIDs");
  find(functions_.GetPlatformInfo, "clGetPlatformInfo");
  find(functions_.GetDeviceIDs, "clGetDeviceIDs");
  find(functions_.GetDeviceInfo, "clGetDeviceInfo");
  find(functions_.CreateContext, "clCreateContext");
  find(functions_.ReleaseContext, "clReleaseContext");
  find(functions_.CreateProgramWithSource, "clCreateProgramWithSource");
  find(functions_.CreateProgramWithBinary, "clCreateProgramWithBinary");
  find(functions_.ReleaseProgram, "clReleaseProgram");
  find(functions_.BuildProgram, "clBuildProgram");
  find(functions_.CompileProgram, "clCompileProgram");
  find(functions_.LinkProgram, "clLinkProgram");
  find(functions_.GetProgramInfo, "clGetProgramInfo");
  find(functions_.GetProgramBuildInfo, "clGetProgramBuildInfo");
  find(functions_.CreateKernel, "clCreateKernel");
  find(functions_.ReleaseKernel, "clReleaseKernel");
  find(functions_.GetKernelInfo, "clGetKernelInfo");
  find(functions_.GetKernelArgInfo, "clGetKernelArgInfo");
  find(functions_.GetKernelWorkGroupInfo, "clGetKernelWorkGroupInfo");
  find(functions_.SetKernelArg, "clSetKernelArg");
  find(functions_.CreateCommandQueue, "clCreateCommandQueue");
  find(functions_.ReleaseCommandQueue, "clReleaseCommandQueue");
  find(functions_.Finish, "clFinish");
  find(functions_.CreateBuffer, "clCreateBuffer");
  find(functions_.ReleaseMemObject, "clReleaseMemObject");
  find(functions_.EnqueueReadBuffer, "clEnqueueReadBuffer");
  find(functions_.EnqueueWriteBuffer, "clEnqueueWriteBuffer");
  find(functions_.EnqueueNDRangeKernel, "clEnqueueNDRangeKernel");
  if (missing != nullptr) {
    return make_error(Code::Unsupported, std::string(kLibrary) + " is older than OpenCL 1.2: it has no " + missing);
  }
  path_ = path_of_address(reinterpret_cast<const void*>(functions_.GetPlatformIDs));
  return {};
}

OpenClLibrary::Device OpenClLibrary::describe(cl_device_id device) const {
  cl_platform_id platform = nullptr;
  functions_.GetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, nullptr);
  return description(functions_, platform, device);
}

Status OpenClLibrary::list_devices() {
  cl_uint count = 0;
  std::vector<cl_platform_id> platforms;
  if (functions_.GetPlatformIDs(0, nullptr, &count) == CL_SUCCESS) platforms.resize(count);
  if (count != 0 && functions_.GetPlatformIDs(count, platforms.data(), nullptr) != CL_SUCCESS) platforms.clear();
  for (cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    if (functions_.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) != CL_SUCCESS) continue;
    std::vector<cl_device_id> ids(devices);
    if (devices == 0 ||
        functions_.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr) != CL_SUCCESS) {
      continue;
    }
    for (cl_device_id id : ids) devices_.push_back(description(functions_, platform, id));
  }
  if (devices_.empty()) {
    return make_error(Code::Unavailable,
                      "an OpenCL driver is installed, but it has no device (run clinfo for details)");
  }
  const auto gpu = std::find_if(devices_.begin(), devices_.end(), [](const Device& d) { return d.info.gpu; });
  if (gpu != devices_.end()) std::rotate(devices_.begin(), gpu, gpu + 1);
  return {};
}

std::string opencl_error_text(cl_int error) {
  static constexpr std::pair<cl_int, const char*> kNames[] = {
      {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
      {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
      {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
      {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
      {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
      {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
      {CL_INVALID_DEVICE, "CL_INVALID_DEVICE"},
      {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT"},
      {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
      {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"},
      {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
      {CL_INVALID_PROGRAM_EXECUTABLE, "CL_INVALID_PROGRAM_EXECUTABLE"},
      {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
      {CL_INVALID_ARG_INDEX, "CL_INVALID_ARG_INDEX"},
      {CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE"},
      {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
      {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
      {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
      {CL_INVALID_WORK_ITEM_SIZE, "CL_INVALID_WORK_ITEM_SIZE"},
      {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"}};
  for (const auto& [code, name] : kNames) {
    if (code == error) return std::string(name) + " (" + std::to_string(error) + ")";
  }
  return "OpenCL error " + std::to_string(error);
}

Result<std::vector<OpenClDeviceInfo>> opencl_devices() {
  const auto library = OpenClLibrary::open();
  if (!library) return library.error();
  std::vector<OpenClDeviceInfo> infos;
  for (const OpenClLibrary::Device& device : (*library)->devices()) infos.push_back(device.info);
  return infos;
}

}  // namespace kiln
