// SPDX-License-Identifier: Apache-2.0
// Device memory: addresses that the host cannot access, and the bytes behind them for copies and host kernels.
#include <sys/mman.h>

#include <cstring>

#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

// Fill byte of new memory. Not zero, which a kernel might rely on.
constexpr int kFresh = 0xA5;

/// Reserves an inaccessible address range. It is never released, so that no address is used twice; the kernel merges
/// adjacent ranges, and they cost nothing.
DevicePointer reserve(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t size = (bytes + kPage - 1) / kPage * kPage + kPage;  // plus a guard page
  void* address = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return address == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(address);
}

bool fill(Allocation& allocation) {
  allocation.bytes.reset(new (std::nothrow) std::uint8_t[allocation.size]);
  if (allocation.bytes == nullptr) return false;
  std::memset(allocation.bytes.get(), kFresh, allocation.size);
  return true;
}

/// Returns the allocation that contains an address, live or not, or null if there never was one.
std::pair<const DevicePointer, Allocation>* allocation_at(Model& model, DevicePointer memory) {
  auto found = model.allocations.upper_bound(memory);
  if (found == model.allocations.begin()) return nullptr;
  --found;
  return memory - found->first < found->second.size ? &*found : nullptr;
}

bool is_pinned(const Model& model, DevicePointer memory) {
  auto found = model.pinned.upper_bound(memory);
  return found != model.pinned.begin() && memory - std::prev(found)->first < std::prev(found)->second;
}

/// Rejects an address that is not the start of an allocation or whose memory was freed.
DriverResult check_whole(Model& model, DevicePointer memory) {
  const auto found = model.allocations.find(memory);
  if (found == model.allocations.end()) return DriverResult::InvalidValue;
  if (found->second.live) return DriverResult::Success;
  ++model.stale_uses;
  return DriverResult::InvalidValue;
}

/// Checks the range of a copy when it is requested. If the memory is freed when the copy runs, the context breaks.
DriverResult check_range(Model& model, DevicePointer memory, std::size_t bytes) {
  return bytes == 0 || model.host(memory, bytes) != nullptr ? DriverResult::Success : DriverResult::InvalidValue;
}

/// Returns work between host and device memory, which calls `move(bytes on the device)` when it runs.
template <class Move>
Work device_work(DevicePointer memory, std::size_t bytes, Move move) {
  return [memory, bytes, move](Model& model) {
    if (bytes == 0) return DriverResult::Success;
    std::uint8_t* const device = model.host(memory, bytes);
    if (device == nullptr) return DriverResult::IllegalAddress;
    move(device);
    return DriverResult::Success;
  };
}

template <class Move>
DriverResult asynchronous(const char* entry, DevicePointer memory, std::size_t bytes, Stream given, Move move) {
  return enter_stream(entry, given, [&](Model& model, Stream stream, StreamState&) {
    const DriverResult checked = check_range(model, memory, bytes);
    return checked == DriverResult::Success ? model.submit(stream, device_work(memory, bytes, move)) : checked;
  });
}

/// Runs a copy on the legacy stream and waits for it.
template <class Move>
DriverResult synchronous(const char* entry, DevicePointer memory, std::size_t bytes, Move move) {
  return enter_stream(entry, nullptr, [&](Model& model, Stream stream, StreamState& state) {
    DriverResult result = model.legacy_call(state.context);
    if (result == DriverResult::Success) result = model.unsafe_call();
    if (result == DriverResult::Success) result = check_range(model, memory, bytes);
    if (result == DriverResult::Success) result = model.submit(stream, device_work(memory, bytes, move));
    if (result != DriverResult::Success) return result;
    model.run(stream, model.sequence);
    return model.at(state.context).broken;
  });
}

auto copy_in(const void* from, std::size_t bytes) {
  return [from, bytes](std::uint8_t* device) { std::memcpy(device, from, bytes); };
}
auto copy_out(void* to, std::size_t bytes) {
  return [to, bytes](const std::uint8_t* device) { std::memcpy(to, device, bytes); };
}

Work device_copy(DevicePointer to, DevicePointer from, std::size_t bytes) {
  return [to, from, bytes](Model& model) {
    std::uint8_t* const target = model.host(to, bytes);
    const std::uint8_t* const source = model.host(from, bytes);
    if (target == nullptr || source == nullptr) return DriverResult::IllegalAddress;
    std::memmove(target, source, bytes);
    return DriverResult::Success;
  };
}

/// Allocates memory. If the device is full, first runs the pending frees on its streams.
DriverResult allocate_after_frees(Model& model, Context context, std::size_t bytes, DevicePointer& memory,
                                  const Allocation& like = {}) {
  const DriverResult first = model.allocate(context, bytes, memory, like);
  if (first != DriverResult::OutOfMemory) return first;
  model.run_context(context);
  return model.allocate(context, bytes, memory, like);
}

/// Allocates in stream order from a pool, or from the device's default pool if it is null.
DriverResult allocate_async(Model& model, DevicePointer* memory, std::size_t bytes, MemoryPool pool, Stream stream,
                            const StreamState& state) {
  if (memory == nullptr) return DriverResult::InvalidValue;
  Allocation like;
  like.pool = pool;
  DevicePointer address = 0;
  const bool recording = state.capture.has_value();
  DriverResult result = recording ? model.allocate(state.context, bytes, address, like)
                                  : allocate_after_frees(model, state.context, bytes, address, like);
  if (result != DriverResult::Success) return result;
  // In a graph that runs again after it freed the memory, this allocates it again at the same address.
  result = model.submit(stream, [address](Model& m) {
    Allocation& allocation = m.allocations.find(address)->second;
    if (allocation.live) return DriverResult::Success;
    if (!fill(allocation) || !m.charge(allocation)) return DriverResult::OutOfMemory;
    allocation.live = true;
    return DriverResult::Success;
  });
  if (result != DriverResult::Success) model.release(model.allocations.find(address)->second);
  if (result == DriverResult::Success) *memory = address;
  return result;
}

}  // namespace

DriverResult Model::allocate(Context context, std::size_t bytes, DevicePointer& memory_out, const Allocation& like) {
  if (bytes == 0) return DriverResult::InvalidValue;
  Allocation allocation;
  allocation.size = bytes;
  allocation.device = at(context).device;
  allocation.context = context;
  allocation.pool = like.pool;
  allocation.managed = like.managed;
  if (!charge(allocation)) return DriverResult::OutOfMemory;
  const DevicePointer address = reserve(bytes);
  if (address == 0 || !fill(allocation)) {
    discharge(allocation);
    return DriverResult::OutOfMemory;
  }
  allocations.emplace(address, std::move(allocation));
  memory_out = address;
  return DriverResult::Success;
}

void Model::release(Allocation& allocation) {
  discharge(allocation);
  allocation.live = false;
  allocation.bytes.reset();
}

std::uint8_t* Model::host(DevicePointer address, std::size_t bytes) {
  auto* const found = allocation_at(*this, address);
  if (found == nullptr) return nullptr;
  if (!found->second.live) ++stale_uses;
  const std::size_t offset = address - found->first;
  if (!found->second.live || bytes > found->second.size - offset) return nullptr;
  return found->second.bytes.get() + offset;
}

extern "C" {

DriverResult cuMemAlloc_v2(DevicePointer* memory, std::size_t bytes) {
  return enter_context("cuMemAlloc", [&](Model& model, Context context) {
    if (memory == nullptr) return DriverResult::InvalidValue;
    const DriverResult safe = model.unsafe_call();
    return safe == DriverResult::Success ? allocate_after_frees(model, context, bytes, *memory) : safe;
  });
}

DriverResult cuMemFree_v2(DevicePointer memory) {
  return enter_context("cuMemFree", [&](Model& model, Context) {
    if (memory == 0) return DriverResult::Success;
    DriverResult result = model.unsafe_call();
    if (result == DriverResult::Success) result = check_whole(model, memory);
    if (result != DriverResult::Success) return result;
    // Waits for work that may still use the memory.
    Allocation& allocation = model.allocations.find(memory)->second;
    model.run_context(allocation.context);
    if (allocation.live) model.release(allocation);
    return DriverResult::Success;
  });
}

DriverResult cuMemAllocManaged(DevicePointer* memory, std::size_t bytes, unsigned flags) {
  return enter_context("cuMemAllocManaged", [&](Model& model, Context context) {
    if (memory == nullptr || (flags != 1 && flags != 2)) return DriverResult::InvalidValue;
    const DriverResult safe = model.unsafe_call();
    if (safe != DriverResult::Success) return safe;
    Allocation like;
    like.managed = true;
    return model.allocate(context, bytes, *memory, like);
  });
}

DriverResult cuMemAllocAsync(DevicePointer* memory, std::size_t bytes, Stream given) {
  return enter_stream("cuMemAllocAsync", given, [&](Model& model, Stream stream, StreamState& state) {
    return allocate_async(model, memory, bytes, nullptr, stream, state);
  });
}

DriverResult cuMemAllocFromPoolAsync(DevicePointer* memory, std::size_t bytes, MemoryPool pool, Stream given) {
  return enter_stream("cuMemAllocFromPoolAsync", given, [&](Model& model, Stream stream, StreamState& state) {
    if (is_default_pool(pool)) return allocate_async(model, memory, bytes, nullptr, stream, state);
    const PoolState* const found = model.pools.find(pool);
    if (found == nullptr || found->destroyed) return model.reject(pool);
    // The stream may be on another device with peer access, which the fake driver does not model.
    if (found->device != model.at(state.context).device) return DriverResult::InvalidValue;
    return allocate_async(model, memory, bytes, pool, stream, state);
  });
}

DriverResult cuMemFreeAsync(DevicePointer memory, Stream given) {
  return enter_stream("cuMemFreeAsync", given, [&](Model& model, Stream stream, StreamState&) {
    const DriverResult checked = check_whole(model, memory);
    if (checked != DriverResult::Success) return checked;
    return model.submit(stream, [memory](Model& m) {
      Allocation& allocation = m.allocations.find(memory)->second;
      if (!allocation.live) return DriverResult::IllegalAddress;
      m.release(allocation);
      return DriverResult::Success;
    });
  });
}

DriverResult cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t bytes, Stream stream) {
  return asynchronous("cuMemcpyHtoDAsync", to, bytes, stream, copy_in(from, bytes));
}
DriverResult cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t bytes, Stream stream) {
  return asynchronous("cuMemcpyDtoHAsync", from, bytes, stream, copy_out(to, bytes));
}
DriverResult cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t bytes) {
  return synchronous("cuMemcpyHtoD", to, bytes, copy_in(from, bytes));
}
DriverResult cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t bytes) {
  return synchronous("cuMemcpyDtoH", from, bytes, copy_out(to, bytes));
}
DriverResult cuMemsetD8_v2(DevicePointer memory, unsigned char value, std::size_t bytes) {
  return synchronous("cuMemsetD8", memory, bytes, [=](std::uint8_t* device) { std::memset(device, value, bytes); });
}
DriverResult cuMemsetD8Async(DevicePointer memory, unsigned char value, std::size_t bytes, Stream stream) {
  return asynchronous("cuMemsetD8Async", memory, bytes, stream,
                      [=](std::uint8_t* device) { std::memset(device, value, bytes); });
}

DriverResult cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, std::size_t bytes, Stream given) {
  return enter_stream("cuMemcpyDtoDAsync", given, [&](Model& model, Stream stream, StreamState&) {
    const DriverResult source = check_range(model, from, bytes);
    const DriverResult target = check_range(model, to, bytes);
    if (source != DriverResult::Success || target != DriverResult::Success) return DriverResult::InvalidValue;
    return bytes == 0 ? DriverResult::Success : model.submit(stream, device_copy(to, from, bytes));
  });
}

DriverResult cuMemGetInfo_v2(std::size_t* available, std::size_t* total) {
  return enter_context("cuMemGetInfo", [&](Model& model, Context context) {
    if (available == nullptr || total == nullptr) return DriverResult::InvalidValue;
    const DeviceState& device = model.devices[static_cast<std::size_t>(model.at(context).device)];
    *total = model.memory;
    *available = model.memory - std::min(device.used, model.memory);
    return DriverResult::Success;
  });
}

DriverResult cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  return enter_context("cuMemHostRegister", [&](Model& model, Context) {
    if (memory == nullptr || bytes == 0 || flags > 15) return DriverResult::InvalidValue;
    const DriverResult safe = model.unsafe_call();
    if (safe == DriverResult::Success) model.pinned[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
    return safe;
  });
}
DriverResult cuMemHostUnregister(void* memory) {
  return enter_context("cuMemHostUnregister", [&](Model& model, Context) {
    const bool known = model.pinned.erase(reinterpret_cast<std::uintptr_t>(memory)) != 0;
    return known ? DriverResult::Success : DriverResult::InvalidValue;
  });
}

DriverResult cuPointerGetAttribute(void* value, int attribute, DevicePointer memory) {
  return enter("cuPointerGetAttribute", [&](Model& model) {
    if (value != nullptr && attribute == 2 && is_pinned(model, memory)) {
      *static_cast<unsigned*>(value) = 1;  // on the host
      return DriverResult::Success;
    }
    const auto* const found = allocation_at(model, memory);
    if (value == nullptr || found == nullptr || !found->second.live) return DriverResult::InvalidValue;
    switch (attribute) {
      case 1: *static_cast<Context*>(value) = found->second.context; return DriverResult::Success;
      case 2: *static_cast<unsigned*>(value) = 2; return DriverResult::Success;  // on a device
      case 3: *static_cast<DevicePointer*>(value) = memory; return DriverResult::Success;
      case 9: *static_cast<int*>(value) = found->second.device; return DriverResult::Success;
      case 11: *static_cast<DevicePointer*>(value) = found->first; return DriverResult::Success;
      case 12: *static_cast<std::size_t*>(value) = found->second.size; return DriverResult::Success;
      default: return DriverResult::NotSupported;
    }
  });
}

}  // extern "C"

}  // namespace kiln::test::driver
