#include "compile/opencl_compiler.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "compile/opencl_inputs.hpp"
#include "compile/opencl_program.hpp"

namespace kiln {

struct OpenClCompiler::Opened {
  std::shared_ptr<const OpenClLibrary> library;
  const OpenClLibrary::Device* device = nullptr;  // the library's
  CompilerIdentity identity;                      // without the environment, which may change
};

namespace {

CompilerIdentity identity_of(const OpenClLibrary& library, const OpenClDeviceInfo& info) {
  Writer out;
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

// The entries that were asked for, or all kernels where none was.
Result<std::vector<Entry>> entries_of(const Unit& unit, const std::vector<std::string>& kernels,
                                      const std::string& log) {
  std::vector<Entry> entries;
  for (const std::string& name : unit.entries().empty() ? kernels : unit.entries()) {
    if (std::find(kernels.begin(), kernels.end(), name) == kernels.end()) {
      std::string all;
      for (const std::string& kernel : kernels) all.append(all.empty() ? "" : ", ").append(kernel);
      return failure(Code::CompileFailed,
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

// A failure is not remembered: the next question may come after a driver was installed, and costs a look at ICD files.
Result<std::shared_ptr<const OpenClCompiler::Opened>> OpenClCompiler::open() {
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
    return failure(Code::Unsupported,
                   "there is no OpenCL device '" + device_ + "' here; there is: " + names_of(devices));
  }
  opened_ = std::make_shared<const Opened>(Opened{*library, &*wanted, identity_of(**library, wanted->info)});
  return opened_;
}

Result<std::shared_ptr<const OpenClCompiler::Opened>> OpenClCompiler::open_for(const Target& target) {
  Result<std::shared_ptr<const Opened>> opened = open();
  if (!opened) return opened;
  const OpenClDeviceInfo& info = (*opened)->device->info;
  if (info.target == target) return opened;
  return failure(Code::Unsupported, "the OpenCL compiler of " + info.target.architecture + " cannot compile for " +
                                        target.name() +
                                        "; the OpenCL devices here: " + names_of((*opened)->library->devices()));
}

// Kept, because a context on a GPU costs device memory and a tenth of a second. Released with the compiler.
Result<cl_context> OpenClCompiler::context(const Opened& opened) {
  const MutexLock lock(mutex_);
  if (context_ != nullptr) return context_;
  cl_int error = CL_SUCCESS;
  context_ = opened.library->functions().CreateContext(nullptr, 1, &opened.device->id, nullptr, nullptr, &error);
  if (context_ != nullptr) return context_;
  return failure(Code::Unavailable, "clCreateContext failed with OpenCL error " + std::to_string(error));
}

Result<CompilerIdentity> OpenClCompiler::identity() {
  const Result<std::shared_ptr<const Opened>> opened = open();
  if (!opened) return opened.error();
  CompilerIdentity identity = (*opened)->identity;
  identity.environment = opencl_environment();
  return identity;
}

Status OpenClCompiler::supports(const Target& target) {
  const Result<std::shared_ptr<const Opened>> opened = open_for(target);
  if (!opened) return opened.error();
  return {};
}

Result<OpenClDeviceInfo> OpenClCompiler::device() {
  const Result<std::shared_ptr<const Opened>> opened = open();
  if (!opened) return opened.error();
  return (*opened)->device->info;
}

bool OpenClCompiler::closed(const Recipe& recipe) const { return opencl_hidden_inputs(recipe.unit).empty(); }

Result<Compiled> OpenClCompiler::compile(const Recipe& recipe) {
  const Unit& unit = recipe.unit;
  if (unit.kind() != kind()) {
    return failure(Code::InvalidArgument, unit.name() + " is a unit of kind " + unit.kind() + ", not opencl");
  }
  if (Status good = check_opencl_inputs(unit); !good) return std::move(good).error();
  const Result<std::shared_ptr<const Opened>> opened = open_for(recipe.target);
  if (!opened) return opened.error();
  const Result<cl_context> context = this->context(**opened);
  if (!context) return context.error();

  const std::chrono::nanoseconds start = system_clock().steady();
  OpenClProgram program((*opened)->library->functions(), *context, (*opened)->device->id);
  if (Status built = program.build(unit); !built) return std::move(built).error();
  const Result<std::vector<std::string>> kernels = program.kernels();
  if (!kernels) return kernels.error();
  Result<std::vector<Entry>> entries = entries_of(unit, *kernels, program.log());
  if (!entries) return entries.error();
  Result<Bytes> binary = program.binary();
  if (!binary) return binary.error();

  Compiled compiled;
  Artifact& artifact = compiled.artifact;
  artifact.bytes = std::move(*binary);
  artifact.target = recipe.target;
  artifact.entries = std::move(*entries);
  artifact.closure = std::make_shared<const Closure>();
  artifact.about = {unit.name(), "opencl " + (*opened)->identity.version, milliseconds_since(system_clock(), start),
                    program.log()};
  compiled.not_cacheable = opencl_hidden_inputs(unit);
  if (recipe.compiler.digest != (*opened)->identity.digest || recipe.compiler.environment != opencl_environment()) {
    compiled.not_cacheable = "the recipe is for another OpenCL compiler or another environment than this process has";
  }
  return compiled;
}

}  // namespace kiln
