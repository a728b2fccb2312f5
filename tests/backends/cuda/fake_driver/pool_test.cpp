// SPDX-License-Identifier: Apache-2.0
// The pools and the managed memory of the driver double, on which the tests of memory tiers rely.
#include <gtest/gtest.h>

#include "support/fakes/cuda_driver/control.hpp"
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace kiln::test {
namespace {

using cuda::DevicePointer;
using cuda::MemoryPoolAttribute;
using R = cuda::DriverResult;

constexpr std::size_t kCapacity = 1 << 20;

class FakePools : public testing::Test {
 protected:
  FakePools() {
    driver_.set_memory(kCapacity);
    EXPECT_EQ(cu.Init(0), R::Success);
    cuda::Context context = nullptr;
    EXPECT_EQ(cu.DevicePrimaryCtxRetain(&context, 0), R::Success);
    EXPECT_EQ(cu.CtxSetCurrent(context), R::Success);
    EXPECT_EQ(cu.StreamCreate(&stream_, cuda::kStreamNonBlocking), R::Success);
  }
  cuda::MemoryPool pool(int device = 0) {
    cuda::MemoryPoolProperties properties;
    properties.device = device;
    cuda::MemoryPool made = nullptr;
    EXPECT_EQ(memory.MemPoolCreate(&made, &properties), R::Success);
    return made;
  }
  std::uint64_t number(cuda::MemoryPool pool, MemoryPoolAttribute attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(memory.MemPoolGetAttribute(pool, attribute, &value), R::Success);
    return value;
  }
  std::size_t available() {
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(driver_.application().MemGetInfo(&free, &total), R::Success);
    return free;
  }

  FakeCudaDriver driver_{"sm_80,sm_80"};
  const cuda::DriverFunctions cu = driver_.driver();
  const cuda::MemoryFunctions memory = driver_.memory();
  cuda::Stream stream_ = nullptr;
};

#ifdef CUDA_VERSION
TEST_F(FakePools, HaveLayoutOfToolkit) {
  using Properties = cuda::MemoryPoolProperties;
  EXPECT_EQ(sizeof(Properties), sizeof(CUmemPoolProps));
  EXPECT_EQ(offsetof(Properties, location), offsetof(CUmemPoolProps, location));
  EXPECT_EQ(offsetof(Properties, security), offsetof(CUmemPoolProps, win32SecurityAttributes));
  EXPECT_EQ(offsetof(Properties, maximum), offsetof(CUmemPoolProps, maxSize));
  EXPECT_EQ(offsetof(Properties, reserved), offsetof(CUmemPoolProps, reserved));
  EXPECT_EQ(Properties().allocation, CU_MEM_ALLOCATION_TYPE_PINNED);
  EXPECT_EQ(Properties().location, CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT_EQ(static_cast<int>(MemoryPoolAttribute::ReleaseThreshold), CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
  EXPECT_EQ(static_cast<int>(MemoryPoolAttribute::UsedHigh), CU_MEMPOOL_ATTR_USED_MEM_HIGH);
  EXPECT_EQ(static_cast<int>(cuda::DeviceAttribute::ManagedMemory), CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  EXPECT_EQ(cuda::kAttachGlobal, static_cast<unsigned>(CU_MEM_ATTACH_GLOBAL));
}
#endif

TEST_F(FakePools, ReleaseMemoryAboveThresholdOnWait) {
  cuda::MemoryPool made = pool();
  std::uint64_t threshold = 1000;
  ASSERT_EQ(memory.MemPoolSetAttribute(made, MemoryPoolAttribute::ReleaseThreshold, &threshold), R::Success);
  DevicePointer address = 0;
  ASSERT_EQ(memory.MemAllocFromPoolAsync(&address, 4000, made, stream_), R::Success);
  EXPECT_EQ(number(made, MemoryPoolAttribute::UsedCurrent), 4000U);
  EXPECT_EQ(available(), kCapacity - 4000);
  ASSERT_EQ(cu.MemFreeAsync(address, stream_), R::Success);
  EXPECT_EQ(number(made, MemoryPoolAttribute::UsedCurrent), 4000U) << "freed before the stream reached the free";
  ASSERT_EQ(cu.StreamSynchronize(stream_), R::Success);
  EXPECT_EQ(number(made, MemoryPoolAttribute::UsedCurrent), 0U);
  EXPECT_EQ(number(made, MemoryPoolAttribute::ReservedCurrent), 1000U);
  EXPECT_EQ(number(made, MemoryPoolAttribute::ReservedHigh), 4000U);
  EXPECT_EQ(available(), kCapacity - 1000);
  ASSERT_EQ(memory.MemPoolTrimTo(made, 0), R::Success);
  EXPECT_EQ(available(), kCapacity);
}

TEST_F(FakePools, ShareDeviceMemoryAndReuseFreedMemory) {
  cuda::MemoryPool made = pool();
  DevicePointer first = 0;
  DevicePointer second = 0;
  ASSERT_EQ(memory.MemAllocFromPoolAsync(&first, kCapacity, made, stream_), R::Success);
  EXPECT_EQ(driver_.application().MemAlloc(&second, 1), R::OutOfMemory);
  EXPECT_EQ(memory.MemAllocFromPoolAsync(&second, 1, made, stream_), R::OutOfMemory);
  EXPECT_EQ(memory.MemAllocManaged(&second, 2 * kCapacity, cuda::kAttachGlobal), R::Success);
  ASSERT_EQ(memory.MemFree(second), R::Success);
  ASSERT_EQ(cu.MemFreeAsync(first, stream_), R::Success);
  EXPECT_EQ(memory.MemAllocFromPoolAsync(&second, kCapacity, made, stream_), R::Success);
}

TEST_F(FakePools, LiveUntilLastAllocationIsFreed) {
  cuda::MemoryPool made = pool();
  DevicePointer address = 0;
  ASSERT_EQ(memory.MemAllocFromPoolAsync(&address, 100, made, stream_), R::Success);
  ASSERT_EQ(memory.MemPoolDestroy(made), R::Success);
  EXPECT_EQ(driver_.counts().pools, 1U);
  EXPECT_EQ(memory.MemPoolDestroy(made), R::InvalidHandle);
  EXPECT_EQ(memory.MemAllocFromPoolAsync(&address, 100, made, stream_), R::InvalidHandle);
  ASSERT_EQ(cu.MemFreeAsync(address, stream_), R::Success);
  ASSERT_EQ(cu.StreamSynchronize(stream_), R::Success);
  EXPECT_EQ(driver_.counts().pools, 0U);
  EXPECT_EQ(available(), kCapacity);
}

TEST_F(FakePools, RejectWhatDriverRejects) {
  cuda::MemoryPool made = nullptr;
  cuda::MemoryPoolProperties properties;
  EXPECT_EQ(memory.MemPoolCreate(&made, nullptr), R::InvalidValue);
  properties.device = 7;
  EXPECT_EQ(memory.MemPoolCreate(&made, &properties), R::InvalidValue);
  properties = {};
  properties.reserved[53] = 1;
  EXPECT_EQ(memory.MemPoolCreate(&made, &properties), R::InvalidValue);
  properties = {};
  properties.maximum = 100;
  ASSERT_EQ(memory.MemPoolCreate(&made, &properties), R::Success);
  DevicePointer address = 0;
  EXPECT_EQ(memory.MemAllocFromPoolAsync(&address, 101, made, stream_), R::OutOfMemory);
  EXPECT_EQ(memory.MemAllocFromPoolAsync(&address, 0, made, stream_), R::InvalidValue);
  EXPECT_EQ(memory.MemAllocManaged(&address, 1, 0), R::InvalidValue);
  std::uint64_t value = 1;
  EXPECT_EQ(memory.MemPoolSetAttribute(made, MemoryPoolAttribute::UsedHigh, &value), R::InvalidValue);
  EXPECT_EQ(memory.MemPoolSetAttribute(made, MemoryPoolAttribute::UsedCurrent, &value), R::InvalidValue);
  EXPECT_EQ(memory.MemAllocFromPoolAsync(&address, 1, pool(1), stream_), R::InvalidValue) << "a pool of another device";
}

}  // namespace
}  // namespace kiln::test
