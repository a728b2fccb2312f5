#include "device/opencl_module.hpp"

#include <sys/random.h>

#include <vector>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "device/opencl_kernel.hpp"
#include "device/pocl_binary.hpp"

namespace kiln {
namespace {

// Whatever the driver says of the bytes, another binary may do better; only a machine at its end is another matter.
Error refusal(const char* what, cl_int error, std::string log) {
  const bool exhausted = error == CL_OUT_OF_HOST_MEMORY || error == CL_OUT_OF_RESOURCES;
  return failure(
      exhausted ? Code::Unavailable : Code::LoadRefused,
      std::string("the OpenCL driver does not take this binary: ") + what + " failed with " + opencl_error_text(error),
      std::move(log));
}

// See with_pocl_folder: another name for each load where PoCL removes the folder; where it keeps it, one for each
// content.
std::string pocl_folder(std::string_view bytes, bool removed) {
  constexpr std::size_t kLongest = 40;
  Digest random{};
  if (removed && getrandom(random.bytes.data(), random.bytes.size(), 0) == ssize_t(random.bytes.size())) {
    return ("kiln_" + random.hex()).substr(0, kLongest);
  }
  return sha256(bytes).hex().substr(0, kLongest);
}

// What the driver is given.
Result<Bytes> checked(const Artifact& artifact, const OpenClPlace& place) {
  if (artifact.bytes.empty()) return failure(Code::LoadRefused, "an empty OpenCL binary");
  if (!artifact.target.architecture.starts_with("pocl:")) return artifact.bytes;
  const std::string_view bytes = artifact.bytes.view();
  if (Status whole = check_pocl_binary(bytes); !whole) return std::move(whole).error();
  return Bytes::of(with_pocl_folder(bytes, pocl_folder(bytes, place.pocl_cache_is_off())));
}

}  // namespace

Result<std::shared_ptr<Module>> OpenClModule::load(std::shared_ptr<const OpenClPlace> place, const Artifact& artifact) {
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
  if (program == nullptr) return refusal("clCreateProgramWithBinary", error, {});
  std::shared_ptr<Module> module(new OpenClModule(std::move(place), program));
  error = cl.BuildProgram(program, count, devices.data(), "", nullptr, nullptr);
  if (error != CL_SUCCESS) return refusal("clBuildProgram", error, opencl_build_log(cl, program, devices.front()));
  return module;
}

OpenClModule::~OpenClModule() { place_->cl().ReleaseProgram(program_); }

Result<std::shared_ptr<DeviceKernel>> OpenClModule::kernel(const std::string& symbol) {
  cl_int error = CL_SUCCESS;
  cl_kernel made = place_->cl().CreateKernel(program_, symbol.c_str(), &error);
  if (made == nullptr) {
    Error said = opencl_failure("clCreateKernel", error);
    said.message = "no kernel '" + symbol + "' in this binary: " + said.message;
    return said;
  }
  return OpenClKernel::take(place_, made, symbol);
}

}  // namespace kiln
