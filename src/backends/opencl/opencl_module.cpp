// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_module.hpp"

#include <sys/random.h>

#include <vector>

#include "backends/opencl/opencl_kernel.hpp"
#include "backends/opencl/pocl_binary.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln {
namespace {

// Has the driver report the names and types of parameters, for OpenClKernel::parameters. PoCL's binaries always have
// them; it asks for the option when a binary is loaded.
constexpr const char* kKeepParameters = "-cl-kernel-arg-info";

// Returns LoadRejected for any error about the bytes, because another binary can work. Exhausted resources are another
// error.
Error rejection(const char* what, cl_int error, std::string log) {
  const bool exhausted = error == CL_OUT_OF_HOST_MEMORY || error == CL_OUT_OF_RESOURCES;
  return make_error(
      exhausted ? Code::Unavailable : Code::LoadRejected,
      std::string("the OpenCL driver rejected this binary: ") + what + " failed with " + opencl_error_text(error),
      std::move(log));
}

// Returns the directory name for with_pocl_directory: a unique name for each load if PoCL removes the directory;
// otherwise one per content.
std::string pocl_directory(std::string_view bytes, bool removed) {
  constexpr std::size_t kMaxNameLength = 40;
  Digest random{};
  if (removed && getrandom(random.bytes.data(), random.bytes.size(), 0) == ssize_t(random.bytes.size())) {
    return ("kiln_" + random.hex()).substr(0, kMaxNameLength);
  }
  return sha256(bytes).hex().substr(0, kMaxNameLength);
}

// Returns the checked bytes for the driver.
Result<Bytes> checked(const Artifact& artifact, const OpenClContextState& place) {
  if (artifact.bytes.empty()) return make_error(Code::LoadRejected, "invalid OpenCL binary: it is empty");
  if (!artifact.target.architecture.starts_with("pocl:")) return artifact.bytes;
  const std::string_view bytes = artifact.bytes.view();
  if (Status whole = check_pocl_binary(bytes); !whole) return std::move(whole).error();
  return Bytes::of(with_pocl_directory(bytes, pocl_directory(bytes, place.pocl_cache_is_off())));
}

}  // namespace

Result<std::shared_ptr<Module>> OpenClModule::load(std::shared_ptr<const OpenClContextState> place,
                                                   const Artifact& artifact) {
  const Result<Bytes> bytes = checked(artifact, *place);
  if (!bytes) return bytes.error();
  const OpenClFunctions& cl = place->cl();
  const std::vector<cl_device_id>& devices = place->devices();
  const std::vector<std::size_t> sizes(devices.size(), bytes->size());
  std::vector<const unsigned char*> binaries(devices.size(), bytes->data());
  cl_int error = CL_SUCCESS;
  const auto count = static_cast<cl_uint>(devices.size());
  cl_program program = cl.CreateProgramWithBinary(place->context(), count, devices.data(), sizes.data(),
                                                  binaries.data(), nullptr, &error);
  if (program == nullptr) return rejection("clCreateProgramWithBinary", error, {});
  std::shared_ptr<Module> module(new OpenClModule(std::move(place), program));
  error = cl.BuildProgram(program, count, devices.data(), kKeepParameters, nullptr, nullptr);
  if (error == CL_INVALID_BUILD_OPTIONS) {
    error = cl.BuildProgram(program, count, devices.data(), "", nullptr, nullptr);
  }
  if (error != CL_SUCCESS) return rejection("clBuildProgram", error, opencl_build_log(cl, program, devices.front()));
  return module;
}

OpenClModule::~OpenClModule() { place_->cl().ReleaseProgram(program_); }

Result<std::shared_ptr<DeviceKernel>> OpenClModule::kernel(const std::string& symbol) {
  cl_int error = CL_SUCCESS;
  cl_kernel made = place_->cl().CreateKernel(program_, symbol.c_str(), &error);
  if (made == nullptr) {
    Error said = opencl_failure("clCreateKernel", error);
    said.message = "kernel '" + symbol + "' was not found in this binary: " + said.message;
    return said;
  }
  return OpenClKernel::take(place_, made, symbol);
}

}  // namespace kiln
