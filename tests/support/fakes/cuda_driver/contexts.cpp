// SPDX-License-Identifier: Apache-2.0
// Initialization, devices and contexts.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

/// Parses "sm_80,sm_90" or "80,90".
std::vector<DeviceState> parse_devices(std::string_view list) {
  std::vector<DeviceState> devices;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string word(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    if (word.starts_with("sm_")) word.erase(0, 3);
    DeviceState device;
    device.architecture = std::atoi(word.c_str());
    if (device.architecture > 0) devices.push_back(device);
  }
  return devices;
}

int attribute_of(const DeviceState& device, cuda::DeviceAttribute attribute) {
  using Attribute = cuda::DeviceAttribute;
  const DeviceFacts facts = facts_of(device.architecture);
  switch (attribute) {
    case Attribute::MaxThreadsPerBlock: return 1024;
    case Attribute::MaxSharedBytesPerBlock: return 48 << 10;
    case Attribute::WarpSize: return 32;
    case Attribute::MaxRegistersPerBlock: return 65536;
    case Attribute::MultiprocessorCount: return facts.multiprocessors;
    case Attribute::MaxThreadsPerMultiprocessor: return facts.threads_per_multiprocessor;
    case Attribute::CapabilityMajor: return device.architecture / 10;
    case Attribute::CapabilityMinor: return device.architecture % 10;
    case Attribute::MaxSharedBytesPerMultiprocessor: return facts.shared_per_multiprocessor;
    // 2 on data center GPUs, 64 on the others, and 32 on the oldest of these.
    case Attribute::SingleToDoubleRatio:
      return device.architecture % 10 == 0 && device.architecture < 120 ? 2 : device.architecture == 75 ? 32 : 64;
    case Attribute::CooperativeLaunch: return 1;
    case Attribute::MaxSharedBytesPerBlockOptIn: return facts.shared_per_block;
    case Attribute::ManagedMemory:
    case Attribute::MemoryPoolsSupported: return 1;
    case Attribute::ClusterLaunch: return device.architecture >= 90 ? 1 : 0;
  }
  return 0;  // an attribute that the fake driver does not model
}

template <class Body>
DriverResult with_device(const char* entry, DeviceNumber number, Body body) {
  return enter(entry, [&](Model& model) {
    return model.valid(number) ? body(model, model.devices[static_cast<std::size_t>(number)])
                               : DriverResult::InvalidDevice;
  });
}

DriverResult create_context(Context* out, DeviceNumber device) {
  return with_device("cuCtxCreate", device, [&](Model& model, DeviceState&) {
    if (out == nullptr) return DriverResult::InvalidValue;
    const DriverResult safe = model.unsafe_call();
    if (safe != DriverResult::Success) return safe;
    *out = model.make_context(device);
    this_thread(model).stack.push_back(*out);
    return DriverResult::Success;
  });
}

}  // namespace

ThreadState& this_thread(const Model& model) {
  thread_local ThreadState state;
  if (state.generation != model.generation) {
    state = {};
    state.generation = model.generation;
  }
  return state;
}

DeviceFacts facts_of(int architecture) {
  constexpr int kKib = 1024;
  switch (architecture) {
    case 75: return {40, 1024, 64 * kKib, 64 * kKib};
    case 80: return {108, 2048, 164 * kKib, 163 * kKib};
    case 86:
    case 89:
    case 120: return {84, 1536, 100 * kKib, 99 * kKib};
    default: return {132, 2048, 228 * kKib, 227 * kKib};
  }
}

void Model::configure(const char* device_list) {
  const char* list = device_list != nullptr ? device_list : std::getenv("KILN_FAKE_DRIVER_DEVICES");
  devices = parse_devices(list != nullptr ? list : "sm_80");
  if (const char* bytes = std::getenv("KILN_FAKE_DRIVER_MEMORY")) memory = std::strtoull(bytes, nullptr, 10);
  if (const char* version = std::getenv("KILN_FAKE_DRIVER_VERSION")) driver_version = std::atoi(version);
}

Context Model::make_context(DeviceNumber device) {
  ContextState state;
  state.device = device;
  state.id = ++serial;
  const Context context = contexts.add(++serial, std::move(state));
  StreamState legacy;
  legacy.context = context;
  legacy.legacy = true;
  legacy.internal = true;
  at(context).legacy = streams.add(++serial, std::move(legacy));
  return context;
}

void Model::destroy_context(Context context) {
  const auto collect = [&](auto& table) {
    table.for_each([&](auto handle, auto& state) {
      if (state.context == context) orphans.insert(handle);
    });
  };
  collect(streams);
  collect(events);
  collect(modules);
  collect(functions);
  for (const void* handle : orphans) {
    auto* const h = const_cast<void*>(handle);
    streams.remove(static_cast<Stream>(h));
    events.remove(static_cast<Event>(h));
    modules.remove(static_cast<Module>(h));
    functions.remove(static_cast<Function>(h));
  }
  for (auto& [address, allocation] : allocations) {
    if (allocation.context == context && allocation.live) release(allocation);
  }
  orphans.insert(context);
  contexts.remove(context);
}

DriverResult Model::current(Context& context) {
  const std::vector<Context>& stack = this_thread(*this).stack;
  context = stack.empty() ? nullptr : stack.back();
  if (context == nullptr) return DriverResult::InvalidContext;
  const ContextState* state = contexts.find(context);
  return state == nullptr ? DriverResult::ContextIsDestroyed : state->broken;
}

DriverResult Model::reject(const void* handle) {
  const auto value = reinterpret_cast<std::uintptr_t>(handle);
  if (value >> 48 == 0xD0B1 && (value & 0xFFFFFFFFFFFF) >> 4 <= serial) ++stale_uses;
  return orphans.count(handle) != 0 ? DriverResult::ContextIsDestroyed : DriverResult::InvalidHandle;
}

extern "C" {

DriverResult cuInit(unsigned flags) {
  use_environment();
  return enter(
      "cuInit",
      [&](Model& model) {
        if (flags != 0) return DriverResult::InvalidValue;
        if (model.devices.empty()) return DriverResult::NoDevice;
        note_initialized(model, true);
        return DriverResult::Success;
      },
      Before::Nothing);
}

DriverResult cuDriverGetVersion(int* version) {
  return enter(
      "cuDriverGetVersion",
      [&](Model& model) {
        if (version == nullptr) return DriverResult::InvalidValue;
        *version = model.driver_version;
        return DriverResult::Success;
      },
      Before::Nothing);
}

DriverResult cuDeviceGetCount(int* count) {
  return enter("cuDeviceGetCount", [&](Model& model) {
    if (count == nullptr) return DriverResult::InvalidValue;
    *count = static_cast<int>(model.devices.size());
    return DriverResult::Success;
  });
}

DriverResult cuDeviceGet(DeviceNumber* device, int ordinal) {
  return with_device("cuDeviceGet", ordinal, [&](Model&, DeviceState&) {
    if (device == nullptr) return DriverResult::InvalidValue;
    *device = ordinal;
    return DriverResult::Success;
  });
}

DriverResult cuDeviceGetName(char* name, int length, DeviceNumber device) {
  return with_device("cuDeviceGetName", device, [&](Model&, DeviceState& state) {
    if (name == nullptr || length <= 0) return DriverResult::InvalidValue;
    const std::string text = "kiln driver double sm_" + std::to_string(state.architecture);
    const std::size_t size = std::min(text.size(), static_cast<std::size_t>(length) - 1);
    std::memcpy(name, text.data(), size);
    name[size] = '\0';
    return DriverResult::Success;
  });
}

DriverResult cuDeviceGetAttribute(int* value, cuda::DeviceAttribute attribute, DeviceNumber device) {
  return with_device("cuDeviceGetAttribute", device, [&](Model&, DeviceState& state) {
    if (value == nullptr) return DriverResult::InvalidValue;
    *value = attribute_of(state, attribute);
    return DriverResult::Success;
  });
}

DriverResult cuDeviceTotalMem_v2(std::size_t* bytes, DeviceNumber device) {
  return with_device("cuDeviceTotalMem", device, [&](Model& model, DeviceState&) {
    if (bytes == nullptr) return DriverResult::InvalidValue;
    *bytes = model.memory;
    return DriverResult::Success;
  });
}

DriverResult cuDevicePrimaryCtxRetain(Context* context, DeviceNumber device) {
  return with_device("cuDevicePrimaryCtxRetain", device, [&](Model& model, DeviceState& state) {
    if (context == nullptr) return DriverResult::InvalidValue;
    if (state.retained == 0) {
      // Creating a context allocates on the device; retaining the existing one does not.
      const DriverResult safe = model.unsafe_call();
      if (safe != DriverResult::Success) return safe;
      state.primary = model.make_context(device);
    }
    ++state.retained;
    *context = state.primary;
    return DriverResult::Success;
  });
}

DriverResult cuDevicePrimaryCtxRelease_v2(DeviceNumber device) {
  return with_device("cuDevicePrimaryCtxRelease", device, [&](Model& model, DeviceState& state) {
    if (state.retained == 0) return DriverResult::InvalidContext;
    if (--state.retained == 0) model.destroy_context(state.primary);
    return DriverResult::Success;
  });
}

DriverResult cuDevicePrimaryCtxReset_v2(DeviceNumber device) {
  return with_device("cuDevicePrimaryCtxReset", device, [&](Model& model, DeviceState& state) {
    if (state.retained == 0) return DriverResult::Success;
    // Owners keep a destroyed context; the next retain creates a new one.
    model.destroy_context(state.primary);
    state.retained = 0;
    return DriverResult::Success;
  });
}

DriverResult cuDevicePrimaryCtxGetState(DeviceNumber device, unsigned* flags, int* active) {
  return with_device("cuDevicePrimaryCtxGetState", device, [&](Model&, DeviceState& state) {
    if (flags == nullptr || active == nullptr) return DriverResult::InvalidValue;
    *flags = 0;
    *active = state.retained > 0 ? 1 : 0;
    return DriverResult::Success;
  });
}

DriverResult cuCtxCreate_v2(Context* context, unsigned, DeviceNumber device) { return create_context(context, device); }

DriverResult cuCtxCreate_v4(Context* context, void*, unsigned, DeviceNumber device) {
  return create_context(context, device);
}

DriverResult cuCtxDestroy_v2(Context context) {
  return enter("cuCtxDestroy", [&](Model& model) {
    if (model.contexts.find(context) == nullptr) {
      model.reject(context);
      return DriverResult::InvalidContext;
    }
    const DeviceState& device = model.devices[static_cast<std::size_t>(model.at(context).device)];
    if (device.retained > 0 && device.primary == context) return DriverResult::InvalidContext;
    std::vector<Context>& stack = this_thread(model).stack;
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    model.destroy_context(context);
    return DriverResult::Success;
  });
}

DriverResult cuCtxGetCurrent(Context* context) {
  return enter("cuCtxGetCurrent", [&](Model& model) {
    if (context == nullptr) return DriverResult::InvalidValue;
    const std::vector<Context>& stack = this_thread(model).stack;
    *context = stack.empty() ? nullptr : stack.back();
    return DriverResult::Success;
  });
}

DriverResult cuCtxSetCurrent(Context context) {
  return enter("cuCtxSetCurrent", [&](Model& model) {
    std::vector<Context>& stack = this_thread(model).stack;
    if (context != nullptr && model.contexts.find(context) == nullptr) {
      model.reject(context);
      return DriverResult::InvalidContext;
    }
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return DriverResult::Success;
  });
}

DriverResult cuCtxPushCurrent_v2(Context context) {
  return enter("cuCtxPushCurrent", [&](Model& model) {
    if (model.contexts.find(context) == nullptr) {
      model.reject(context);
      return DriverResult::InvalidContext;
    }
    this_thread(model).stack.push_back(context);
    return DriverResult::Success;
  });
}

DriverResult cuCtxPopCurrent_v2(Context* context) {
  return enter("cuCtxPopCurrent", [&](Model& model) {
    std::vector<Context>& stack = this_thread(model).stack;
    if (stack.empty()) return DriverResult::InvalidContext;
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return DriverResult::Success;
  });
}

DriverResult cuCtxGetDevice(DeviceNumber* device) {
  return enter_context("cuCtxGetDevice", [&](Model& model, Context context) {
    if (device == nullptr) return DriverResult::InvalidValue;
    *device = model.at(context).device;
    return DriverResult::Success;
  });
}

// A query of the id does not count as a use: it is the way to detect that a context was destroyed.
DriverResult cuCtxGetId(Context context, unsigned long long* id) {
  return enter("cuCtxGetId", [&](Model& model) {
    if (id == nullptr) return DriverResult::InvalidValue;
    if (context == nullptr) {
      const DriverResult result = model.current(context);
      if (result != DriverResult::Success) return result;
    }
    const ContextState* state = model.contexts.find(context);
    if (state == nullptr) {
      return model.orphans.count(context) != 0 ? DriverResult::ContextIsDestroyed : DriverResult::InvalidContext;
    }
    *id = state->id;
    return DriverResult::Success;
  });
}

}  // extern "C"

}  // namespace kiln::test::driver
