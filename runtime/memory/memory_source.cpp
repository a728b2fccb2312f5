// SPDX-License-Identifier: Apache-2.0
#include "runtime/memory/memory_source.hpp"

#include <limits>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/process/process_lifecycle.hpp"

namespace kiln::runtime {
namespace {

using cuda::DriverResult;
using cuda::MemoryPoolAttribute;

/// A private stream-ordered pool. The default pool of the device and its release threshold belong to the whole process.
class PoolSource : public MemorySource {
 public:
  PoolSource(MemoryDriver driver, cuda::MemoryPool pool) : driver_(std::move(driver)), pool_(pool) {}
  // Allocations in use stay valid: the driver keeps a pool until its last allocation is freed. A forked child has
  // neither a driver nor a pool.
  ~PoolSource() override {
    if (fork_generation() == made_in_) driver_.memory.MemPoolDestroy(pool_);
  }
  PoolSource(const PoolSource&) = delete;
  PoolSource& operator=(const PoolSource&) = delete;

  DriverResult allocate(cuda::DevicePointer& memory, std::size_t bytes, cuda::Stream stream) override {
    return driver_.memory.MemAllocFromPoolAsync(&memory, bytes, pool_, stream);
  }
  DriverResult release(cuda::DevicePointer memory, cuda::Stream stream) override {
    return (*driver_.api)->MemFreeAsync(memory, stream);
  }
  bool is_stream_ordered() const override { return true; }
  const char* driver_function() const override { return "cuMemAllocFromPoolAsync"; }

  Result<std::uint64_t> trim() override {
    const std::uint64_t before = held();
    const DriverResult result = driver_.memory.MemPoolTrimTo(pool_, 0);
    if (result != DriverResult::Success) return driver_.api->failure("cuMemPoolTrimTo", result);
    const std::uint64_t after = held();
    return before > after ? before - after : 0;
  }

 private:
  // Returns 0 if the driver does not report it. The value is only for messages.
  std::uint64_t held() {
    std::uint64_t bytes = 0;
    const auto current = MemoryPoolAttribute::ReservedCurrent;
    return driver_.memory.MemPoolGetAttribute(pool_, current, &bytes) == DriverResult::Success ? bytes : 0;
  }

  const MemoryDriver driver_;
  const cuda::MemoryPool pool_;
  const unsigned made_in_ = fork_generation();
};

/// Memory that the driver allocates and frees immediately, independent of streams.
class UnorderedSource : public MemorySource {
 public:
  explicit UnorderedSource(MemoryDriver driver) : driver_(std::move(driver)) {}

  DriverResult release(cuda::DevicePointer memory, cuda::Stream /*stream*/) override {
    return driver_.memory.MemFree(memory);
  }
  bool is_stream_ordered() const override { return false; }

 protected:
  const MemoryDriver driver_;
};

class ManagedSource : public UnorderedSource {
 public:
  using UnorderedSource::UnorderedSource;
  DriverResult allocate(cuda::DevicePointer& memory, std::size_t bytes, cuda::Stream /*stream*/) override {
    return driver_.memory.MemAllocManaged(&memory, bytes, cuda::kAttachGlobal);
  }
  const char* driver_function() const override { return "cuMemAllocManaged"; }
};

class PlainSource : public UnorderedSource {
 public:
  using UnorderedSource::UnorderedSource;
  DriverResult allocate(cuda::DevicePointer& memory, std::size_t bytes, cuda::Stream /*stream*/) override {
    return driver_.memory.MemAlloc(&memory, bytes);
  }
  const char* driver_function() const override { return "cuMemAlloc"; }
};

/// Returns Code::Unsupported if the device lacks the attribute; `what` names it in the message.
Status require(const MemoryDriver& driver, cuda::DeviceNumber device, cuda::DeviceAttribute attribute,
               const char* what) {
  int has = 0;
  const DriverResult result = (*driver.api)->DeviceGetAttribute(&has, attribute, device);
  if (result != DriverResult::Success) return driver.api->failure("cuDeviceGetAttribute", result);
  if (has != 0) return {};
  return make_error(Code::Unsupported, std::string("the device does not support ") + what);
}

Error missing(const char* what) {
  return make_error(Code::Unsupported, std::string("the driver lacks functions for ") + what);
}

Result<std::shared_ptr<MemorySource>> open_pool(const MemoryDriver& driver, cuda::DeviceNumber device,
                                                std::uint64_t limit) {
  const cuda::MemoryFunctions& has = driver.memory;
  if (has.MemPoolCreate == nullptr || has.MemPoolDestroy == nullptr || has.MemPoolSetAttribute == nullptr ||
      has.MemPoolGetAttribute == nullptr || has.MemPoolTrimTo == nullptr || has.MemAllocFromPoolAsync == nullptr) {
    return missing("memory pools");
  }
  Status able = require(driver, device, cuda::DeviceAttribute::MemoryPoolsSupported, "memory pools");
  if (!able) return std::move(able).error();
  cuda::MemoryPoolProperties properties;
  properties.device = device;
  cuda::MemoryPool pool = nullptr;
  DriverResult result = has.MemPoolCreate(&pool, &properties);
  if (result != DriverResult::Success) return driver.api->failure("cuMemPoolCreate", result);
  auto source = std::make_shared<PoolSource>(driver, pool);
  // By default a pool releases its memory at every synchronization, and allocating it again is slow.
  std::uint64_t keep = limit != 0 ? limit : std::numeric_limits<std::uint64_t>::max();
  result = has.MemPoolSetAttribute(pool, MemoryPoolAttribute::ReleaseThreshold, &keep);
  if (result != DriverResult::Success) return driver.api->failure("cuMemPoolSetAttribute", result);
  return std::shared_ptr<MemorySource>(std::move(source));
}

}  // namespace

Result<std::shared_ptr<MemorySource>> open_source(MemoryTier tier, const MemoryDriver& driver,
                                                  cuda::DeviceNumber device, std::uint64_t limit) {
  if (tier == MemoryTier::Pool || tier == MemoryTier::RetryingPool) return open_pool(driver, device, limit);
  if (driver.memory.MemFree == nullptr) return missing("plain memory");
  if (tier == MemoryTier::Managed) {
    if (driver.memory.MemAllocManaged == nullptr) return missing("managed memory");
    Status able = require(driver, device, cuda::DeviceAttribute::ManagedMemory, "managed memory");
    if (!able) return std::move(able).error();
    return std::shared_ptr<MemorySource>(std::make_shared<ManagedSource>(driver));
  }
  if (driver.memory.MemAlloc == nullptr) return missing("plain memory");
  return std::shared_ptr<MemorySource>(std::make_shared<PlainSource>(driver));
}

}  // namespace kiln::runtime
