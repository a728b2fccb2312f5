// SPDX-License-Identifier: Apache-2.0
// Memory pools of callers: reserved memory, used memory, and trimming.
#include <algorithm>
#include <iterator>

#include "support/fakes/cuda_driver/enter.hpp"

namespace kiln::test::driver {
namespace {

using cuda::MemoryPoolAttribute;

constexpr std::uintptr_t kDefaultPools = 0xD0B2;

bool well_formed(const Model& model, const cuda::MemoryPoolProperties* properties) {
  if (properties == nullptr || !model.valid(properties->device)) return false;
  return properties->allocation == cuda::kAllocationPinned && properties->handles == 0 &&
         properties->location == cuda::kLocationDevice && properties->security == nullptr && properties->usage == 0 &&
         std::all_of(std::begin(properties->reserved), std::end(properties->reserved),
                     [](unsigned char byte) { return byte == 0; });
}

/// Calls `body(model, pool)`. For a device's default pool it passes an empty temporary pool.
template <class Body>
DriverResult with_pool(const char* entry, MemoryPool pool, Body body) {
  return enter(entry, [&](Model& model) {
    PoolState own;
    if (is_default_pool(pool)) return body(model, own);
    PoolState* const found = model.pools.find(pool);
    return found == nullptr || found->destroyed ? model.reject(pool) : body(model, *found);
  });
}

std::uint64_t* number_of(PoolState& pool, MemoryPoolAttribute attribute) {
  switch (attribute) {
    case MemoryPoolAttribute::ReleaseThreshold: return &pool.threshold;
    case MemoryPoolAttribute::ReservedCurrent: return &pool.reserved;
    case MemoryPoolAttribute::ReservedHigh: return &pool.reserved_high;
    case MemoryPoolAttribute::UsedCurrent: return &pool.used;
    case MemoryPoolAttribute::UsedHigh: return &pool.used_high;
  }
  return nullptr;
}

/// Returns whether an attribute controls the reuse of memory, which the fake driver ignores.
bool is_about_reuse(MemoryPoolAttribute attribute) {
  return static_cast<int>(attribute) >= 1 && static_cast<int>(attribute) < 4;
}

}  // namespace

bool is_default_pool(MemoryPool pool) { return reinterpret_cast<std::uintptr_t>(pool) >> 48 == kDefaultPools; }

bool Model::charge(const Allocation& allocation) {
  if (allocation.managed) return true;
  PoolState* const pool = pools.find(allocation.pool);
  const std::uint64_t idle = pool != nullptr ? pool->reserved - pool->used : 0;
  const std::uint64_t more = allocation.size - std::min<std::uint64_t>(idle, allocation.size);
  DeviceState& device = devices[static_cast<std::size_t>(allocation.device)];
  if (more > memory || device.used > memory - more) return false;
  if (pool != nullptr && pool->maximum != 0 && (more > pool->maximum || pool->reserved > pool->maximum - more))
    return false;
  device.used += more;
  if (pool == nullptr) return true;
  pool->reserved += more;
  pool->used += allocation.size;
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  pool->used_high = std::max(pool->used_high, pool->used);
  return true;
}

void Model::discharge(const Allocation& allocation) {
  if (allocation.managed) return;
  PoolState* const pool = pools.find(allocation.pool);
  if (pool == nullptr) {
    devices[static_cast<std::size_t>(allocation.device)].used -= allocation.size;
    return;
  }
  pool->used -= allocation.size;
  // A real driver does this at the next synchronization. Here pending frees run only in a synchronization, so it is the
  // same.
  shrink(*pool, pool->threshold);
  if (pool->destroyed && pool->used == 0) pools.remove(allocation.pool);
}

void Model::shrink(PoolState& pool, std::uint64_t keep) {
  const std::uint64_t left = std::min(pool.reserved, std::max(pool.used, keep));
  devices[static_cast<std::size_t>(pool.device)].used -= pool.reserved - left;
  pool.reserved = left;
}

extern "C" {

DriverResult cuDeviceGetDefaultMemPool(MemoryPool* pool, DeviceNumber device) {
  return enter("cuDeviceGetDefaultMemPool", [&](Model& model) {
    if (!model.valid(device)) return DriverResult::InvalidDevice;
    if (pool == nullptr) return DriverResult::InvalidValue;
    *pool = reinterpret_cast<MemoryPool>(kDefaultPools << 48 | static_cast<std::uintptr_t>(device));
    return DriverResult::Success;
  });
}
DriverResult cuDeviceGetMemPool(MemoryPool* pool, DeviceNumber device) {
  return cuDeviceGetDefaultMemPool(pool, device);
}

DriverResult cuMemPoolCreate(MemoryPool* pool, const cuda::MemoryPoolProperties* properties) {
  return enter("cuMemPoolCreate", [&](Model& model) {
    if (pool == nullptr || !well_formed(model, properties)) return DriverResult::InvalidValue;
    const DriverResult safe = model.unsafe_call();
    if (safe != DriverResult::Success) return safe;
    PoolState state;
    state.device = properties->device;
    state.maximum = properties->maximum;
    *pool = model.pools.add(++model.serial, state);
    return DriverResult::Success;
  });
}

DriverResult cuMemPoolDestroy(MemoryPool pool) {
  return with_pool("cuMemPoolDestroy", pool, [&](Model& model, PoolState& state) {
    if (is_default_pool(pool)) return DriverResult::InvalidValue;
    state.destroyed = true;
    state.threshold = 0;
    model.shrink(state, 0);
    if (state.used == 0) model.pools.remove(pool);
    return DriverResult::Success;
  });
}

DriverResult cuMemPoolSetAttribute(MemoryPool pool, MemoryPoolAttribute attribute, void* value) {
  return with_pool("cuMemPoolSetAttribute", pool, [&](Model&, PoolState& state) {
    if (value != nullptr && is_about_reuse(attribute)) return DriverResult::Success;
    std::uint64_t* const number = number_of(state, attribute);
    if (value == nullptr || number == nullptr) return DriverResult::InvalidValue;
    const std::uint64_t wanted = *static_cast<const std::uint64_t*>(value);
    const bool high = attribute == MemoryPoolAttribute::ReservedHigh || attribute == MemoryPoolAttribute::UsedHigh;
    if (attribute != MemoryPoolAttribute::ReleaseThreshold && (!high || wanted != 0)) return DriverResult::InvalidValue;
    *number = wanted;
    return DriverResult::Success;
  });
}

DriverResult cuMemPoolGetAttribute(MemoryPool pool, MemoryPoolAttribute attribute, void* value) {
  return with_pool("cuMemPoolGetAttribute", pool, [&](Model&, PoolState& state) {
    const std::uint64_t* const number = number_of(state, attribute);
    if (value == nullptr || number == nullptr) return DriverResult::InvalidValue;
    *static_cast<std::uint64_t*>(value) = *number;
    return DriverResult::Success;
  });
}

DriverResult cuMemPoolTrimTo(MemoryPool pool, std::size_t bytes_to_keep) {
  return with_pool("cuMemPoolTrimTo", pool, [&](Model& model, PoolState& state) {
    model.shrink(state, bytes_to_keep);
    return DriverResult::Success;
  });
}

}  // extern "C"

}  // namespace kiln::test::driver
