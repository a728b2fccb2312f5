// SPDX-License-Identifier: Apache-2.0
// Libraries, which belong to no context and are loaded into one when one of their kernels is needed there; and modules,
// which belong to one context.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

constexpr int kDefaultShared = 48 << 10;

/// Reads memory of this process without faulting: a driver gets no length, and an image with a wrong length must not
/// crash the test. Returns the readable part.
std::vector<std::uint8_t> check(const void* code, std::size_t bytes) {
  std::vector<std::uint8_t> copy(bytes);
  const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  std::size_t done = 0;
  while (memory >= 0 && done < bytes) {
    const auto at = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(code) + done);
    // Page by page, to get the readable part before an unmapped page.
    const std::size_t step = std::min<std::size_t>(bytes - done, 4096 - static_cast<std::size_t>(at) % 4096);
    const ssize_t got = pread(memory, copy.data() + done, step, at);
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  if (memory >= 0) close(memory);
  copy.resize(done);
  return copy;
}

/// Returns text up to its terminating zero.
std::string check_text(const void* code) {
  constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  std::string text;
  while (text.size() < kMaxBytes) {
    const auto part = check(static_cast<const char*>(code) + text.size(), 4096);
    const auto end = std::find(part.begin(), part.end(), 0);
    text.append(part.begin(), end);
    if (end != part.end() || part.size() < 4096) break;
  }
  return text;
}

DriverResult read_image(const Model& model, const void* code, Image& image) {
  if (code == nullptr) return DriverResult::InvalidValue;
  constexpr std::size_t kHeader = 64;
  const std::size_t extent = cubin_extent(check(code, kHeader));
  if (extent == 0) return read_ptx(check_text(code), model.newest_ptx, image);
  return read_cubin(check(code, extent), image) ? DriverResult::Success : DriverResult::InvalidImage;
}

const KernelImage* kernel_named(const Image& image, const std::string& name) {
  const auto found =
      std::find_if(image.kernels.begin(), image.kernels.end(), [&](const KernelImage& k) { return k.name == name; });
  return found == image.kernels.end() ? nullptr : &*found;
}

/// Loads a library. A binary that no device can run is rejected at once; one that some devices can run, when it is used
/// on another.
DriverResult load_library(Model& model, Library* out, const void* code) {
  if (out == nullptr) return DriverResult::InvalidValue;
  const DriverResult safe = model.unsafe_call();
  if (safe != DriverResult::Success) return safe;
  auto image = std::make_shared<Image>();
  const DriverResult read = read_image(model, code, *image);
  if (read != DriverResult::Success) return read;
  const bool fits = std::any_of(model.devices.begin(), model.devices.end(),
                                [&](const DeviceState& device) { return image->runs_on(device.architecture); });
  if (!fits) return DriverResult::NoBinaryForGpu;
  const Library library = model.libraries.add(++model.serial, {image, {}});
  for (const KernelImage& kernel : image->kernels) {
    KernelState state;
    state.library = library;
    state.image = &kernel;
    model.libraries.find(library)->kernels[kernel.name] = model.kernels.add(++model.serial, std::move(state));
  }
  *out = library;
  return DriverResult::Success;
}

DriverResult load_module(const char* entry, Module* out, const void* code) {
  return enter_context(entry, [&](Model& model, Context context) {
    if (out == nullptr) return DriverResult::InvalidValue;
    const DriverResult safe = model.unsafe_call();
    if (safe != DriverResult::Success) return safe;
    auto image = std::make_shared<Image>();
    const DriverResult read = read_image(model, code, *image);
    if (read != DriverResult::Success) return read;
    const auto device = static_cast<std::size_t>(model.at(context).device);
    if (!image->runs_on(model.devices[device].architecture)) return DriverResult::NoBinaryForGpu;
    *out = model.modules.add(++model.serial, {context, image, {}});
    return DriverResult::Success;
  });
}

void unload_library(Model& model, Library library) {
  std::vector<Function> functions;
  model.functions.for_each([&](Function function, FunctionState& state) {
    const KernelState* kernel = model.kernels.find(state.from);
    if (kernel != nullptr && kernel->library == library) functions.push_back(function);
  });
  for (const Function function : functions) model.functions.remove(function);
  for (const auto& [name, kernel] : model.libraries.find(library)->kernels) {
    model.contexts.for_each([&, k = kernel](Context, ContextState& context) { context.functions.erase(k); });
    model.kernels.remove(kernel);
  }
  model.contexts.for_each([&](Context, ContextState& context) { context.loaded.erase(library); });
  model.libraries.remove(library);
}

template <class Body>
DriverResult with_kernel(const char* entry, Kernel kernel, Body body) {
  return enter(entry, [&](Model& model) {
    KernelState* state = model.kernels.find(kernel);
    return state != nullptr ? body(model, *state) : model.reject(kernel);
  });
}

template <class Body>
DriverResult with_function(const char* entry, Function function, Body body) {
  return enter(entry, [&](Model& model) {
    FunctionState* state = model.functions.find(function);
    return state != nullptr ? body(model, *state) : model.reject(function);
  });
}

DriverResult attribute_of(const KernelImage& kernel, int dynamic_limit, int architecture, cuda::FunctionAttribute which,
                          int* value) {
  using Attribute = cuda::FunctionAttribute;
  if (value == nullptr) return DriverResult::InvalidValue;
  switch (which) {
    case Attribute::MaxThreadsPerBlock:
      *value = kernel.max_threads == 0 ? 1024 : static_cast<int>(kernel.max_threads);
      break;
    case Attribute::SharedBytes: *value = static_cast<int>(kernel.shared_bytes); break;
    case Attribute::Registers: *value = static_cast<int>(kernel.registers); break;
    case Attribute::PtxVersion:
    case Attribute::BinaryVersion: *value = architecture; break;
    case Attribute::MaxDynamicSharedBytes: *value = dynamic_limit; break;
    default: *value = 0; break;
  }
  return DriverResult::Success;
}

int default_limit(const KernelImage& kernel) {
  return std::max(0, kDefaultShared - static_cast<int>(std::min<std::size_t>(kernel.shared_bytes, kDefaultShared)));
}

/// Returns whether a device allows this much dynamic shared memory.
bool allowed_shared(const Model& model, DeviceNumber device, const KernelImage& kernel, int bytes) {
  const DeviceFacts facts = facts_of(model.devices[static_cast<std::size_t>(device)].architecture);
  return bytes >= 0 &&
         static_cast<std::size_t>(bytes) + kernel.shared_bytes <= static_cast<std::size_t>(facts.shared_per_block);
}

DriverResult parameter_of(const KernelImage& kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (index >= kernel.parameters.size() || offset == nullptr) return DriverResult::InvalidValue;
  *offset = kernel.parameters[index].offset;
  if (size != nullptr) *size = kernel.parameters[index].size;
  return DriverResult::Success;
}

}  // namespace

DriverResult Model::function_of(Kernel kernel, Context context, Function& function) {
  const KernelState* state = kernels.find(kernel);
  if (state == nullptr) return reject(kernel);
  ContextState& place = at(context);
  const auto known = place.functions.find(kernel);
  if (known != place.functions.end()) {
    function = known->second;
    return DriverResult::Success;
  }
  const LibraryState& library = *libraries.find(state->library);
  if (place.loaded.count(state->library) == 0) {
    const DriverResult safe = unsafe_call();
    if (safe != DriverResult::Success) return safe;
    if (!library.image->runs_on(devices[static_cast<std::size_t>(place.device)].architecture)) {
      return DriverResult::NoBinaryForGpu;
    }
    place.loaded.insert(state->library);
    loads.push_back({place.id, place.device, state->library});
  }
  FunctionState made;
  made.context = context;
  made.image = library.image;
  made.kernel = state->image;
  made.from = kernel;
  function = functions.add(++serial, std::move(made));
  place.functions[kernel] = function;
  return DriverResult::Success;
}

int Model::dynamic_limit(const FunctionState& function) {
  if (function.dynamic_shared) return *function.dynamic_shared;
  if (const KernelState* kernel = kernels.find(function.from)) {
    const auto set = kernel->dynamic_shared.find(at(function.context).device);
    if (set != kernel->dynamic_shared.end()) return set->second;
  }
  return default_limit(*function.kernel);
}

extern "C" {

DriverResult cuLibraryLoadData(Library* library, const void* code, int*, void**, unsigned, int*, void**, unsigned) {
  return enter("cuLibraryLoadData", [&](Model& model) { return load_library(model, library, code); });
}

DriverResult cuLibraryUnload(Library library) {
  return enter("cuLibraryUnload", [&](Model& model) {
    if (model.libraries.find(library) == nullptr) return model.reject(library);
    const DriverResult safe = model.unsafe_call();
    if (safe == DriverResult::Success) unload_library(model, library);
    return safe;
  });
}

DriverResult cuLibraryGetKernel(Kernel* kernel, Library library, const char* name) {
  return enter("cuLibraryGetKernel", [&](Model& model) {
    const LibraryState* state = model.libraries.find(library);
    if (state == nullptr) return model.reject(library);
    if (kernel == nullptr || name == nullptr) return DriverResult::InvalidValue;
    const auto found = state->kernels.find(name);
    if (found == state->kernels.end()) return DriverResult::NotFound;
    *kernel = found->second;
    return DriverResult::Success;
  });
}

DriverResult cuLibraryGetKernelCount(unsigned* count, Library library) {
  return enter("cuLibraryGetKernelCount", [&](Model& model) {
    const LibraryState* state = model.libraries.find(library);
    if (state == nullptr) return model.reject(library);
    if (count == nullptr) return DriverResult::InvalidValue;
    *count = static_cast<unsigned>(state->kernels.size());
    return DriverResult::Success;
  });
}

DriverResult cuKernelGetFunction(Function* function, Kernel kernel) {
  return enter_context("cuKernelGetFunction", [&](Model& model, Context context) {
    return function == nullptr ? DriverResult::InvalidValue : model.function_of(kernel, context, *function);
  });
}

DriverResult cuKernelGetAttribute(int* value, cuda::FunctionAttribute which, Kernel kernel, DeviceNumber device) {
  return with_kernel("cuKernelGetAttribute", kernel, [&](Model& model, KernelState& state) {
    if (!model.valid(device)) return DriverResult::InvalidDevice;
    const auto set = state.dynamic_shared.find(device);
    const int limit = set != state.dynamic_shared.end() ? set->second : default_limit(*state.image);
    const int architecture = model.libraries.find(state.library)->image->architecture;
    return attribute_of(*state.image, limit, architecture, which, value);
  });
}

DriverResult cuKernelSetAttribute(cuda::FunctionAttribute which, int value, Kernel kernel, DeviceNumber device) {
  return with_kernel("cuKernelSetAttribute", kernel, [&](Model& model, KernelState& state) {
    if (!model.valid(device)) return DriverResult::InvalidDevice;
    if (which != cuda::FunctionAttribute::MaxDynamicSharedBytes) return DriverResult::Success;
    if (!allowed_shared(model, device, *state.image, value)) return DriverResult::InvalidValue;
    state.dynamic_shared[device] = value;
    return DriverResult::Success;
  });
}

DriverResult cuKernelGetParamInfo(Kernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  return with_kernel("cuKernelGetParamInfo", kernel,
                     [&](Model&, KernelState& state) { return parameter_of(*state.image, index, offset, size); });
}

DriverResult cuFuncGetParamInfo(Function function, std::size_t index, std::size_t* offset, std::size_t* size) {
  return with_function("cuFuncGetParamInfo", function,
                       [&](Model&, FunctionState& state) { return parameter_of(*state.kernel, index, offset, size); });
}

DriverResult cuFuncGetAttribute(int* value, cuda::FunctionAttribute which, Function function) {
  return with_function("cuFuncGetAttribute", function, [&](Model& model, FunctionState& state) {
    return attribute_of(*state.kernel, model.dynamic_limit(state), state.image->architecture, which, value);
  });
}

DriverResult cuFuncSetAttribute(Function function, cuda::FunctionAttribute which, int value) {
  return with_function("cuFuncSetAttribute", function, [&](Model& model, FunctionState& state) {
    if (which != cuda::FunctionAttribute::MaxDynamicSharedBytes) return DriverResult::Success;
    if (!allowed_shared(model, model.at(state.context).device, *state.kernel, value)) return DriverResult::InvalidValue;
    state.dynamic_shared = value;
    return DriverResult::Success;
  });
}

DriverResult cuModuleLoadData(Module* module, const void* code) {
  return load_module("cuModuleLoadData", module, code);
}

DriverResult cuModuleLoadDataEx(Module* module, const void* code, unsigned, int*, void**) {
  return load_module("cuModuleLoadDataEx", module, code);
}

DriverResult cuModuleGetFunction(Function* function, Module module, const char* name) {
  return enter_context("cuModuleGetFunction", [&](Model& model, Context) {
    ModuleState* state = model.modules.find(module);
    if (state == nullptr) return model.reject(module);
    if (function == nullptr || name == nullptr) return DriverResult::InvalidValue;
    const KernelImage* kernel = kernel_named(*state->image, name);
    if (kernel == nullptr) return DriverResult::NotFound;
    Function& known = state->functions[name];
    if (known == nullptr) {
      known = model.functions.add(++model.serial, {state->context, state->image, kernel, nullptr, std::nullopt});
    }
    *function = known;
    return DriverResult::Success;
  });
}

DriverResult cuModuleUnload(Module module) {
  return enter_context("cuModuleUnload", [&](Model& model, Context) {
    const ModuleState* state = model.modules.find(module);
    if (state == nullptr) return model.reject(module);
    const DriverResult safe = model.unsafe_call();
    if (safe != DriverResult::Success) return safe;
    for (const auto& [name, function] : state->functions) model.functions.remove(function);
    model.modules.remove(module);
    return DriverResult::Success;
  });
}

}  // extern "C"

}  // namespace kiln::test::driver
