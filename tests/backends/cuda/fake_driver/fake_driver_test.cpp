// SPDX-License-Identifier: Apache-2.0
// The driver double itself: it rejects what a driver rejects, on which the tests of CudaDevice rely.
#include <signal.h>

#include <thread>

#include "fixture.hpp"
#include "support/processes/child.hpp"
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace kiln::test {
namespace {

using cuda::Context;
using cuda::DevicePointer;
using cuda::Kernel;
using cuda::Library;
using cuda::Stream;

class Double : public FakeFixture {};
using FakeDeathTest = Double;

#ifdef CUDA_VERSION
TEST_F(Double, DeclarationsHaveLayoutOfToolkit) {
  EXPECT_EQ(sizeof(cuda::DriverLaunchConfig), sizeof(CUlaunchConfig));
  EXPECT_EQ(offsetof(cuda::DriverLaunchConfig, shared_bytes), offsetof(CUlaunchConfig, sharedMemBytes));
  EXPECT_EQ(offsetof(cuda::DriverLaunchConfig, stream), offsetof(CUlaunchConfig, hStream));
  EXPECT_EQ(offsetof(cuda::DriverLaunchConfig, attributes), offsetof(CUlaunchConfig, attrs));
  EXPECT_EQ(offsetof(cuda::DriverLaunchConfig, attribute_count), offsetof(CUlaunchConfig, numAttrs));
  EXPECT_EQ(sizeof(cuda::DriverLaunchAttribute), sizeof(CUlaunchAttribute));
  EXPECT_EQ(offsetof(cuda::DriverLaunchAttribute, value), offsetof(CUlaunchAttribute, value));
  EXPECT_EQ(static_cast<int>(R::NoBinaryForGpu), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(static_cast<int>(R::UnsupportedPtxVersion), CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(static_cast<int>(R::CaptureImplicit), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  EXPECT_EQ(static_cast<int>(cuda::DeviceAttribute::ClusterLaunch), CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
  EXPECT_EQ(static_cast<int>(cuda::FunctionAttribute::MaxDynamicSharedBytes),
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_EQ(static_cast<int>(cuda::LaunchAttributeId::ClusterDimension), CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
}
#endif

TEST_F(Double, IsFoundByDriverName) {
  void* const by_name = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_NE(by_name, nullptr);
  EXPECT_NE(dlsym(by_name, kDoubleControlSymbol), nullptr);
  dlclose(by_name);
}

TEST_F(Double, ReturnsFunctionFormOfVersion) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto find = reinterpret_cast<cuda::GetProcAddress>(dlsym(library, cuda::kGetProcAddressSymbol));
  const auto form = [&](const char* name, int version) {
    void* function = nullptr;
    EXPECT_EQ(find(name, &function, version, 0, nullptr), R::Success);
    return function;
  };
  EXPECT_EQ(form("cuCtxCreate", 3020), dlsym(library, "cuCtxCreate_v2"));
  EXPECT_EQ(form("cuCtxCreate", 13000), dlsym(library, "cuCtxCreate_v4"));
  EXPECT_EQ(form("cuMemAlloc", 13000), dlsym(library, "cuMemAlloc_v2"));
  void* function = nullptr;
  cuda::SymbolStatus status{};
  EXPECT_EQ(find("cuLibraryLoadData", &function, 11000, 0, &status), R::Success);
  EXPECT_EQ(status, cuda::SymbolStatus::VersionNotSufficient);
  EXPECT_EQ(find("cuNoSuchThing", &function, 12000, 0, &status), R::Success);
  EXPECT_EQ(status, cuda::SymbolStatus::NotFound);
  EXPECT_EQ(function, nullptr);
  driver_.set_driver_version(11040);
  EXPECT_EQ(find("cuLibraryLoadData", &function, 11040, 0, &status), R::Success);
  EXPECT_EQ(status, cuda::SymbolStatus::NotFound);
  EXPECT_EQ(find("cuLibraryLoadData", &function, 12000, 0, &status), R::InvalidValue);
  dlclose(library);
}

TEST_F(Double, OtherFunctionsAreNotSupported) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  const auto call = reinterpret_cast<R (*)()>(dlsym(library, "cuTexObjectCreate"));
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call(), R::NotSupported);
  dlclose(library);
}

TEST_F(Double, HasConfiguredDevices) {
  int count = 0;
  EXPECT_EQ(cu.DeviceGetCount(&count), R::Success);
  EXPECT_EQ(count, 4);
  int major = 0;
  EXPECT_EQ(cu.DeviceGetAttribute(&major, cuda::DeviceAttribute::CapabilityMajor, 2), R::Success);
  EXPECT_EQ(major, 9);
  EXPECT_EQ(cu.DeviceGetAttribute(&major, cuda::DeviceAttribute::CapabilityMajor, 4), R::InvalidDevice);
  driver_.reset("");
  EXPECT_EQ(cu.Init(0), R::NoDevice);
  EXPECT_EQ(cu.DeviceGetCount(&count), R::NotInitialized);
}

TEST_F(Double, LoadsLibraryOncePerContextOnFirstUse) {
  const Library library = loaded();
  const Kernel saxpy = kernel(library, "saxpy");
  EXPECT_TRUE(driver_.loads().empty());
  cuda::Function function = nullptr;
  EXPECT_EQ(cu.KernelGetFunction(&function, saxpy), R::Success);
  EXPECT_EQ(cu.KernelGetFunction(&function, kernel(library, "nothing")), R::Success);
  EXPECT_EQ(launch(kernel(library, "nothing"), nullptr), R::Success);
  EXPECT_EQ(driver_.loads().size(), 1u);
  cu.CtxSetCurrent(primary(1));
  EXPECT_EQ(launch(kernel(library, "nothing"), nullptr), R::Success);
  EXPECT_EQ(driver_.loads().size(), 2u);
  EXPECT_NE(driver_.loads()[0].context, driver_.loads()[1].context);
  EXPECT_EQ(driver_.loads()[1].device, 1);
}

TEST_F(Double, CopiesRunInOrderAtSynchronization) {
  const Stream on = stream();
  const DevicePointer device = memory(16);
  int first = 1;
  int second = 2;
  int out = 0;
  EXPECT_EQ(cu.MemcpyHtoDAsync(device, &first, 4, on), R::Success);
  EXPECT_EQ(cu.MemcpyHtoDAsync(device, &second, 4, on), R::Success);
  EXPECT_EQ(cu.MemcpyDtoHAsync(&out, device, 4, on), R::Success);
  EXPECT_EQ(out, 0);
  EXPECT_EQ(driver_.counts().pending, 3u);
  EXPECT_EQ(cu.StreamSynchronize(on), R::Success);
  EXPECT_EQ(out, 2);
  EXPECT_EQ(driver_.counts().pending, 0u);
}

TEST_F(Double, PollingStreamCompletes) {
  const Stream on = stream();
  const DevicePointer device = memory(4);
  int value = 3;
  cu.MemcpyHtoDAsync(device, &value, 4, on);
  cu.MemcpyHtoDAsync(device, &value, 4, on);
  EXPECT_EQ(app.StreamQuery(on), R::NotReady);
  EXPECT_EQ(app.StreamQuery(on), R::NotReady);
  EXPECT_EQ(app.StreamQuery(on), R::Success);
}

TEST_F(Double, EventOrdersTwoStreams) {
  const Stream writer = stream();
  const Stream reader = stream();
  const DevicePointer device = memory(4);
  int value = 7;
  int out = 0;
  EventPointer event = nullptr;
  ASSERT_EQ(app.EventCreate(&event, 0), R::Success);
  cu.MemcpyHtoDAsync(device, &value, 4, writer);
  EXPECT_EQ(app.EventRecord(event, writer), R::Success);
  EXPECT_EQ(app.EventQuery(event), R::NotReady);
  EXPECT_EQ(app.StreamWaitEvent(reader, event, 0), R::Success);
  cu.MemcpyDtoHAsync(&out, device, 4, reader);
  EXPECT_EQ(cu.StreamSynchronize(reader), R::Success);
  EXPECT_EQ(out, 7);
  EXPECT_EQ(app.EventQuery(event), R::Success);
}

TEST_F(Double, LegacyStreamWaitsOnlyForBlockingStreams) {
  const Stream blocking = stream(0);
  const Stream apart = stream();
  const DevicePointer device = memory(8);
  const int values[2] = {11, 12};
  const int zeros[2] = {};
  ASSERT_EQ(cu.MemcpyHtoD(device, zeros, 8), R::Success);
  cu.MemcpyHtoDAsync(device, &values[0], 4, blocking);
  cu.MemcpyHtoDAsync(device + 4, &values[1], 4, apart);
  int out[2] = {};
  EXPECT_EQ(cu.MemcpyDtoH(out, device, 8), R::Success);
  EXPECT_EQ(out[0], 11);
  EXPECT_EQ(out[1], 0);
}

TEST_F(FakeDeathTest, HostCannotAccessDeviceMemory) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto* const device = reinterpret_cast<const volatile int*>(memory(64));
  const auto touch = [&] {
    signal(SIGSEGV, SIG_DFL);  // sanitizers install their own handler
    (void)*device;
  };
  EXPECT_EXIT(touch(), testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(Double, CopiesStayWithinTheirAllocation) {
  const DevicePointer device = memory(100);
  char host[128] = {};
  EXPECT_EQ(cu.MemcpyHtoD(device, host, 100), R::Success);
  EXPECT_EQ(cu.MemcpyHtoD(device + 99, host, 1), R::Success);
  EXPECT_EQ(cu.MemcpyHtoD(device, host, 101), R::InvalidValue);
  EXPECT_EQ(cu.MemcpyHtoD(device + 100, host, 1), R::InvalidValue);
  EXPECT_EQ(cu.MemcpyDtoHAsync(host, device + 90, 11, nullptr), R::InvalidValue);
  EXPECT_EQ(driver_.stale_uses(), 0u);
  EXPECT_EQ(app.MemFree(device), R::Success);
  EXPECT_EQ(cu.MemcpyDtoH(host, device, 1), R::InvalidValue);
  EXPECT_EQ(app.MemFree(device), R::InvalidValue);
  EXPECT_EQ(driver_.stale_uses(), 2u);
}

TEST_F(Double, UseAfterFreeBreaksContext) {
  const Stream on = stream();
  DevicePointer device = 0;
  ASSERT_EQ(cu.MemAllocAsync(&device, 4, on), R::Success);
  EXPECT_EQ(cu.MemFreeAsync(device, on), R::Success);
  int out = 0;
  EXPECT_EQ(cu.MemcpyDtoHAsync(&out, device, 4, on), R::Success);
  EXPECT_EQ(cu.StreamSynchronize(on), R::IllegalAddress);
  EXPECT_EQ(cu.StreamSynchronize(on), R::IllegalAddress);
  EXPECT_EQ(driver_.stale_uses(), 1u);
}

TEST_F(Double, MemoryHasConfiguredCapacity) {
  driver_.set_memory(1000);
  const Stream on = stream();
  DevicePointer first = 0;
  DevicePointer second = 0;
  EXPECT_EQ(cu.MemAllocAsync(&first, 600, on), R::Success);
  EXPECT_EQ(cu.MemAllocAsync(&second, 600, on), R::OutOfMemory);
  EXPECT_EQ(app.MemAlloc(&second, 401), R::OutOfMemory);
  EXPECT_EQ(cu.MemFreeAsync(first, on), R::Success);
  EXPECT_EQ(cu.MemAllocAsync(&second, 600, on), R::Success);  // the pending free provides the memory
  EXPECT_NE(first, second);
  std::size_t available = 0;
  std::size_t total = 0;
  EXPECT_EQ(app.MemGetInfo(&available, &total), R::Success);
  EXPECT_EQ(available, 400u);
  EXPECT_EQ(total, 1000u);
}

TEST_F(Double, NthCallFailsAsConfigured) {
  driver_.fail("cuMemAlloc", 2, R::Unknown, 2);
  DevicePointer made = 0;
  EXPECT_EQ(app.MemAlloc(&made, 1), R::Success);
  EXPECT_EQ(app.MemAlloc(&made, 1), R::Unknown);
  EXPECT_EQ(app.MemAlloc(&made, 1), R::Unknown);
  EXPECT_EQ(app.MemAlloc(&made, 1), R::Success);
  EXPECT_EQ(driver_.calls("cuMemAlloc"), 4u);
}

TEST_F(Double, HandlesOfDestroyedContextAreRejected) {
  Context other = nullptr;
  ASSERT_EQ(app.CtxCreate(&other, 0, 0), R::Success);
  const Stream on = stream();
  const DevicePointer device = memory(4);
  cuda::Function function = nullptr;
  ASSERT_EQ(cu.KernelGetFunction(&function, kernel(loaded(), "nothing")), R::Success);
  std::thread([&] {
    cu.CtxSetCurrent(other);
    std::thread([&] { EXPECT_EQ(app.CtxDestroy(other), R::Success); }).join();
    // The context is still current here, but destroyed.
    Context current = nullptr;
    EXPECT_EQ(cu.CtxGetCurrent(&current), R::Success);
    EXPECT_EQ(current, other);
    unsigned long long id = 0;
    EXPECT_EQ(cu.CtxGetId(current, &id), R::ContextIsDestroyed);
    DevicePointer made = 0;
    EXPECT_EQ(app.MemAlloc(&made, 4), R::ContextIsDestroyed);
    EXPECT_EQ(driver_.stale_uses(), 0u);
  }).join();
  cu.CtxSetCurrent(context_);
  EXPECT_EQ(cu.StreamSynchronize(on), R::ContextIsDestroyed);
  cuda::DriverLaunchConfig config;
  EXPECT_EQ(cu.LaunchKernelEx(&config, function, nullptr, nullptr), R::ContextIsDestroyed);
  char byte = 0;
  EXPECT_EQ(cu.MemcpyDtoH(&byte, device, 1), R::InvalidValue);
  EXPECT_EQ(cu.CtxSetCurrent(other), R::InvalidContext);
  EXPECT_EQ(driver_.stale_uses(), 4u);
  EXPECT_EQ(driver_.counts().allocations, 0u);
}

TEST_F(Double, ContextIdsAreNotReused) {
  unsigned long long first = 0;
  unsigned long long second = 0;
  for (unsigned long long* id : {&first, &second}) {
    Context context = nullptr;
    ASSERT_EQ(app.CtxCreate(&context, 0, 0), R::Success);
    EXPECT_EQ(cu.CtxGetId(context, id), R::Success);
    EXPECT_EQ(app.CtxDestroy(context), R::Success);
  }
  EXPECT_NE(first, second);
}

TEST_F(Double, FunctionIsValidOnlyInItsContext) {
  cuda::Function function = nullptr;
  ASSERT_EQ(cu.KernelGetFunction(&function, kernel(loaded(), "nothing")), R::Success);
  cu.CtxSetCurrent(primary(1));
  cuda::DriverLaunchConfig config;
  config.stream = stream();
  EXPECT_EQ(cu.LaunchKernelEx(&config, function, nullptr, nullptr), R::InvalidHandle);
  EXPECT_EQ(driver_.stale_uses(), 0u);
}

TEST_F(Double, UnloadedLibraryAndKernelsAreStale) {
  const Library library = loaded();
  const Kernel nothing = kernel(library, "nothing");
  EXPECT_EQ(cu.LibraryUnload(library), R::Success);
  EXPECT_EQ(launch(nothing, nullptr), R::InvalidHandle);
  EXPECT_EQ(cu.LibraryUnload(library), R::InvalidHandle);
  EXPECT_EQ(driver_.stale_uses(), 2u);
}

TEST_F(Double, CountsLeaks) {
  EXPECT_EQ(driver_.leaks(), 1u);  // the primary context
  const Stream on = stream();
  const DevicePointer device = memory(10);
  const Library library = loaded();
  EXPECT_EQ(driver_.leaks(), 4u);
  EXPECT_EQ(driver_.counts().bytes, 10u);
  cu.StreamDestroy(on);
  app.MemFree(device);
  cu.LibraryUnload(library);
  cu.DevicePrimaryCtxRelease(0);
  EXPECT_EQ(driver_.leaks(), 0u);
}

TEST_F(Double, ForkedChildHasNoDriver) {
  const int code = run_in_child([&] {
    int count = 0;
    if (cu.Init(0) != R::NotInitialized) return 1;
    return cu.DeviceGetCount(&count) == R::NotInitialized ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

TEST_F(Double, WorksFromManyThreads) {
  const Kernel nothing = kernel(loaded(), "nothing");
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      cu.CtxSetCurrent(primary(i % 2));
      const Stream on = stream();
      for (int round = 0; round < 50; ++round) {
        EXPECT_EQ(launch(nothing, on), R::Success);
        EXPECT_EQ(cu.StreamSynchronize(on), R::Success);
      }
      cu.StreamDestroy(on);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(driver_.launches().size(), 400u);
  EXPECT_EQ(driver_.loads().size(), 2u);
}

}  // namespace
}  // namespace kiln::test
