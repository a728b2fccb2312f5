// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/opencl_compiler.hpp"

#include <algorithm>
#include <utility>

#include "backends/opencl/opencl_inputs.hpp"
#include "backends/opencl/opencl_program.hpp"
#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

namespace kiln {

struct OpenClCompiler::DriverState {
  std::shared_ptr<const OpenClLibrary> library;
  const OpenClLibrary::Device* device = nullptr;  // owned by the library
  CompilerIdentity identity;                      // without the environment, which can change
};

namespace {

CompilerIdentity identity_of(const OpenClLibrary& library, const OpenClDeviceInfo& info) {
  BinaryWriter out;
  out.text("kiln opencl 1").text(info.platform).text(info.platform_version);
  out.text(info.driver).text(info.device).text(info.device_version);
  CompilerIdentity identity;
  identity.name = "opencl";
  identity.version = info.platform + " " + info.driver;
  identity.path = library.path();
  identity.digest = sha256(out.bytes());
  return identity;
}

std::string names_of(const std::vector<OpenClLibrary::Device>& devices) {
  std::string names;
  for (const OpenClLibrary::Device& device : devices) {
    names.append(names.empty() ? "" : ", ").append(device.info.target.architecture);
  }
  return names;
}

// Returns the requested entry points, or all kernels if none is requested.
Result<std::vector<EntryPoint>> entries_of(const Unit& unit, const std::vector<std::string>& kernels,
                                           const std::string& log) {
  std::vector<EntryPoint> entries;
  for (const std::string& name : unit.entries().empty() ? kernels : unit.entries()) {
    if (std::find(kernels.begin(), kernels.end(), name) == kernels.end()) {
      std::string all;
      for (const std::string& kernel : kernels) all.append(all.empty() ? "" : ", ").append(kernel);
      return make_error(Code::CompileFailed,
                        unit.name() + " has no kernel " + name + "; it has: " + (all.empty() ? "none" : all), log);
    }
    entries.push_back({name, name});
  }
  return entries;
}

}  // namespace

OpenClCompiler::OpenClCompiler(std::string device) : device_(std::move(device)) {}

OpenClCompiler::~OpenClCompiler() {
  const MutexLock lock(mutex_);
  if (context_ != nullptr) opened_->library->functions().ReleaseContext(context_);
}

// Opens the driver. A failure is not cached: a driver can be installed before the next call, and a retry only reads ICD
// files.
Result<std::shared_ptr<const OpenClCompiler::DriverState>> OpenClCompiler::open() {
  const MutexLock lock(mutex_);
  if (opened_ != nullptr) return opened_;
  Result<std::shared_ptr<const OpenClLibrary>> library = OpenClLibrary::open();
  if (!library) return library.error();
  const auto& devices = (*library)->devices();
  auto wanted = devices.begin();
  if (!device_.empty()) {
    wanted = std::find_if(devices.begin(), devices.end(), [this](const OpenClLibrary::Device& device) {
      return device.info.target.architecture == device_;
    });
  }
  if (wanted == devices.end()) {
    return make_error(Code::Unsupported,
                      "OpenCL device '" + device_ + "' was not found; available: " + names_of(devices));
  }
  opened_ = std::make_shared<const DriverState>(DriverState{*library, &*wanted, identity_of(**library, wanted->info)});
  return opened_;
}

Result<std::shared_ptr<const OpenClCompiler::DriverState>> OpenClCompiler::open_for(const Target& target) {
  Result<std::shared_ptr<const DriverState>> opened = open();
  if (!opened) return opened;
  const OpenClDeviceInfo& info = (*opened)->device->info;
  if (info.target == target) return opened;
  return make_error(Code::Unsupported, "the OpenCL compiler of " + info.target.architecture + " does not support " +
                                           target.name() +
                                           "; available OpenCL devices: " + names_of((*opened)->library->devices()));
}

// Returns the context. It is cached, because a context on a GPU costs device memory and a tenth of a second. The
// destructor releases it.
Result<cl_context> OpenClCompiler::context(const DriverState& opened) {
  const MutexLock lock(mutex_);
  if (context_ != nullptr) return context_;
  cl_int error = CL_SUCCESS;
  context_ = opened.library->functions().CreateContext(nullptr, 1, &opened.device->id, nullptr, nullptr, &error);
  if (context_ != nullptr) return context_;
  return make_error(Code::Unavailable, "clCreateContext failed with OpenCL error " + std::to_string(error));
}

Result<CompilerIdentity> OpenClCompiler::identity(const RequestContext& /*context*/) {
  const Result<std::shared_ptr<const DriverState>> opened = open();
  if (!opened) return opened.error();
  CompilerIdentity identity = (*opened)->identity;
  identity.environment = opencl_environment();
  return identity;
}

Status OpenClCompiler::supports(const Target& target) {
  const Result<std::shared_ptr<const DriverState>> opened = open_for(target);
  if (!opened) return opened.error();
  return {};
}

Result<OpenClDeviceInfo> OpenClCompiler::device() {
  const Result<std::shared_ptr<const DriverState>> opened = open();
  if (!opened) return opened.error();
  return (*opened)->device->info;
}

bool OpenClCompiler::is_self_contained(const Recipe& recipe) const {
  return opencl_untracked_inputs(recipe.unit).empty();
}

Result<CompileResult> OpenClCompiler::compile(const Recipe& recipe, const RequestContext& /*context*/) {
  const Unit& unit = recipe.unit;
  if (unit.kind() != kind()) {
    return make_error(Code::InvalidArgument, unit.name() + " is a unit of kind " + unit.kind() + ", not opencl");
  }
  if (Status good = check_opencl_inputs(unit); !good) return std::move(good).error();
  const Result<std::shared_ptr<const DriverState>> opened = open_for(recipe.target);
  if (!opened) return opened.error();
  const Result<cl_context> context = this->context(**opened);
  if (!context) return context.error();

  const std::chrono::nanoseconds start = system_clock().steady();
  OpenClProgram program((*opened)->library->functions(), *context, (*opened)->device->id);
  if (Status built = program.build(unit); !built) return std::move(built).error();
  const Result<std::vector<std::string>> kernels = program.kernels();
  if (!kernels) return kernels.error();
  Result<std::vector<EntryPoint>> entries = entries_of(unit, *kernels, program.log());
  if (!entries) return entries.error();
  Result<Bytes> binary = program.binary();
  if (!binary) return binary.error();

  CompileResult compiled;
  Artifact& artifact = compiled.artifact;
  artifact.bytes = std::move(*binary);
  artifact.target = recipe.target;
  artifact.entries = std::move(*entries);
  artifact.dependency_set = std::make_shared<const DependencySet>();
  artifact.metadata = {unit.name(), "opencl " + (*opened)->identity.version, milliseconds_since(system_clock(), start),
                       program.log()};
  compiled.uncacheable_reason = opencl_untracked_inputs(unit);
  if (recipe.compiler.digest != (*opened)->identity.digest || recipe.compiler.environment != opencl_environment()) {
    compiled.uncacheable_reason = "the recipe was created for another OpenCL compiler or environment";
  }
  return compiled;
}

}  // namespace kiln
