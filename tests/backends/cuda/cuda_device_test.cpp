// SPDX-License-Identifier: Apache-2.0
// CudaDevice on the driver double: no kernel runs here, and the driver's results follow its documentation.
#include "backends/cuda/cuda_device.hpp"

#include <set>

#include "backends/cuda/cubin.hpp"
#include "backends/cuda/cuda_test.hpp"
#include "conformance/device_conformance.hpp"
#include "support/fixtures/traced_device_setup.hpp"

namespace kiln::test {
namespace {

using cuda::DriverResult;
using cuda::LaunchAttributeId;

/// A device on the driver double. Checks at the end that everything was released and no stale handle was used.
class CudaSetup : public DeviceSetup {
 public:
  CudaSetup() {
    driver_.set_memory(64 << 20);
    run_on_the_host(driver_);
  }
  ~CudaSetup() override {
    EXPECT_EQ(driver_.leaks(), 0U);
    EXPECT_EQ(driver_.stale_uses(), 0U);
    EXPECT_EQ(driver_.counts().relaxed_threads, 0U);
  }
  std::unique_ptr<Device> open(Allocator allocator) override {
    return std::make_unique<CudaDevice>(CudaDevice::Options{FakeCudaDriver::path(), std::move(allocator)});
  }
  Artifact artifact() override { return cuda_artifact(Target::sm(80)); }
  std::size_t too_much() override { return std::size_t{1} << 40; }

 private:
  FakeCudaDriver driver_{"sm_80"};
};

template <class Setup>
std::unique_ptr<DeviceSetup> make() {
  return std::make_unique<Setup>();
}
INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance,
                         testing::Values(DeviceHarness{"cuda", &make<CudaSetup>, true},
                                         DeviceHarness{"observed", &make<TracedDeviceSetup<CudaSetup>>, true}));

class CudaDriver : public CudaTest {};

TEST_F(CudaDriver, IsOpenedOnFirstUse) {
  CudaDevice device(options());
  EXPECT_EQ(device.kind(), "cuda");
  EXPECT_EQ(driver_.calls("cuInit"), 0U);
  EXPECT_TRUE(device.devices().has_value());
  EXPECT_TRUE(device.devices().has_value());
  EXPECT_EQ(driver_.calls("cuInit"), 1U);
}

TEST_F(CudaDriver, ErrorsNameTheNextStep) {
  CudaDevice missing({"/nowhere/libcuda.so.1", {}});
  const auto none = missing.devices();
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::Unavailable);
  EXPECT_NE(none.error().message.find("; install NVIDIA's driver, or set driver (KILN_DRIVER) to its library"),
            std::string::npos)
      << none.error().message;

  driver_.fail("cuInit", 1, DriverResult::NoDevice);
  CudaDevice without(options());
  const auto no_device = without.devices();
  ASSERT_FALSE(no_device.has_value());
  EXPECT_EQ(no_device.error().code, Code::Unavailable);
  EXPECT_NE(no_device.error().message.find("CUDA_ERROR_NO_DEVICE (100)"), std::string::npos)
      << no_device.error().message;
  EXPECT_TRUE(without.devices().has_value()) << "a failure was cached permanently";

  driver_.set_driver_version(12000);
  CudaDevice old(options());
  const auto too_old = old.devices();
  ASSERT_FALSE(too_old.has_value());
  EXPECT_EQ(too_old.error().code, Code::Unsupported);
  EXPECT_NE(too_old.error().message.find("cuKernelGetParamInfo"), std::string::npos) << too_old.error().message;
}

TEST_F(CudaDriver, ListsEveryDeviceWithItsArchitecture) {
  reset("sm_80,sm_90,sm_120");
  CudaDevice device(options());
  const auto devices = device.devices().value();
  ASSERT_EQ(devices.size(), 3U);
  EXPECT_EQ(devices[0].target, Target::sm(80));
  EXPECT_EQ(devices[1].target, Target::sm(90));
  EXPECT_EQ(devices[2].target, Target::sm(120));
}

class CudaContexts : public CudaTest {};

TEST_F(CudaContexts, AreNotCreatedRetainedOrSwitchedImplicitly) {
  CudaDevice device(options());
  ASSERT_TRUE(device.devices().has_value());
  const auto kernel = saxpy_of(device, artifact());
  EXPECT_EQ(device.current_context().error().code, Code::Unavailable);
  for (const Status& status : {kernel->prepare(nullptr), launch_nothing(*kernel, nullptr)}) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::Unavailable) << status.error().message;
  }
  EXPECT_EQ(kernel->function().error().code, Code::Unavailable);
  EXPECT_EQ(kernel->occupancy(0).error().code, Code::Unavailable);
  EXPECT_FALSE(device.create_stream().has_value());
  EXPECT_FALSE(device.allocate(16, nullptr).has_value());
  for (const char* call : {"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "cuCtxPushCurrent", "cuCtxPopCurrent"}) {
    EXPECT_EQ(driver_.calls(call), 0U) << call;
  }
}

TEST_F(CudaContexts, ContextOfCallerIsUsed) {
  reset("sm_80,sm_90");
  CudaDevice device(options());
  cuda::Context made = make_context(1);
  unsigned long long id = 0;
  driver_.driver().CtxGetId(made, &id);
  const auto place = device.current_context();
  ASSERT_TRUE(place.has_value()) << place.error().message;
  EXPECT_EQ(place->context, id);
  EXPECT_EQ(place->device, 1U);
  EXPECT_EQ(place->target, Target::sm(90));
  ASSERT_TRUE(launch_nothing(*saxpy_of(device, artifact(90)), nullptr).has_value());
  EXPECT_EQ(driver_.launches().at(0).context, id);
  EXPECT_EQ(driver_.calls("cuDevicePrimaryCtxRetain"), 0U);
  EXPECT_EQ(driver_.application().CtxDestroy(made), DriverResult::Success);
}

TEST_F(CudaContexts, MakeCurrentRetainsPrimaryUntilDeviceIsDestroyed) {
  {
    CudaDevice device(options());
    ASSERT_TRUE(device.make_current(0).has_value());
    ASSERT_TRUE(device.make_current(0).has_value());
    EXPECT_EQ(driver_.calls("cuDevicePrimaryCtxRetain"), 1U);
    EXPECT_EQ(driver_.leaks(), 1U);
  }
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(CudaContexts, EnsureCurrentUsesPrimaryOfFirstDeviceOnlyWithoutContext) {
  reset("sm_80,sm_90");
  CudaDevice device(options());
  cuda::Context made = make_context(1);
  ASSERT_TRUE(device.ensure_current().has_value());
  EXPECT_EQ(device.current_context()->device, 1U) << "the context of the caller was replaced";
  EXPECT_EQ(driver_.application().CtxDestroy(made), DriverResult::Success);
  driver_.driver().CtxSetCurrent(nullptr);
  ASSERT_TRUE(device.ensure_current().has_value());
  EXPECT_EQ(device.current_context()->device, 0U);
  EXPECT_EQ(driver_.calls("cuDevicePrimaryCtxRetain"), 1U);
}

TEST_F(CudaContexts, EachContextHasOneFunctionAndOneLoad) {
  CudaDevice device(options());
  const auto kernel = saxpy_of(device, artifact());
  EXPECT_EQ(driver_.loads().size(), 0U) << "loaded before the first use";
  std::set<void*> functions;
  std::vector<cuda::Context> contexts;
  for (int i = 0; i < 3; ++i) {
    contexts.push_back(make_context(0));
    for (int again = 0; again < 5; ++again) ASSERT_TRUE(launch_nothing(*kernel, nullptr).has_value());
    functions.insert(kernel->function().value());
  }
  EXPECT_EQ(functions.size(), 3U);
  EXPECT_EQ(driver_.loads().size(), 3U);
  EXPECT_EQ(driver_.calls("cuKernelGetFunction"), 6U) << "once for each context, and once for each function()";
  for (cuda::Context context : contexts) driver_.application().CtxDestroy(context);
}

TEST_F(CudaContexts, DestroyedContextIsNotConfusedWithNewOne) {
  CudaDevice device(options());
  const auto kernel = saxpy_of(device, artifact());
  cuda::Context first = make_context(0);
  const std::uint64_t before = device.current_context()->context;
  ASSERT_TRUE(launch_nothing(*kernel, nullptr).has_value());
  driver_.application().CtxDestroy(first);
  EXPECT_EQ(launch_nothing(*kernel, nullptr).error().code, Code::Unavailable);
  cuda::Context second = make_context(0);
  EXPECT_NE(device.current_context()->context, before);
  ASSERT_TRUE(launch_nothing(*kernel, nullptr).has_value());
  EXPECT_EQ(driver_.loads().size(), 2U);
  EXPECT_EQ(driver_.stale_uses(), 0U);
  driver_.application().CtxDestroy(second);
}

class CudaLoad : public CudaTest {};

TEST_F(CudaLoad, RejectsCubinOfAnotherArchitecture) {
  CudaDevice device(options());
  const auto loaded = device.load(artifact(90));
  ASSERT_FALSE(loaded.has_value());
  EXPECT_EQ(loaded.error().code, Code::LoadRejected);
  EXPECT_NE(loaded.error().message.find("CUDA_ERROR_NO_BINARY_FOR_GPU"), std::string::npos) << loaded.error().message;
  EXPECT_EQ(driver_.leaks(), 0U);
}

TEST_F(CudaLoad, RejectsCubinAtLaunchIfOnlyAnotherDeviceSupportsIt) {
  reset("sm_80,sm_90");
  CudaDevice device(options());
  const auto kernel = saxpy_of(device, artifact(90));
  ASSERT_TRUE(device.make_current(0).has_value());
  const Status rejected = launch_nothing(*kernel, nullptr);
  ASSERT_FALSE(rejected.has_value());
  EXPECT_EQ(rejected.error().code, Code::LoadRejected) << rejected.error().message;
  ASSERT_TRUE(device.make_current(1).has_value());
  EXPECT_TRUE(launch_nothing(*kernel, nullptr).has_value());
}

TEST_F(CudaLoad, CubinRunsOnLaterMinorArchitecture) {
  reset("sm_86");
  CudaDevice device(options());
  ASSERT_TRUE(device.make_current(0).has_value());
  EXPECT_TRUE(launch_nothing(*saxpy_of(device, artifact(80)), nullptr).has_value());
}

TEST_F(CudaLoad, RejectsPtxNewerThanDriver) {
  const Artifact& ptx = cuda_artifact(Target::parse("compute_80").value());
  CudaDevice device(options());
  ASSERT_TRUE(device.make_current(0).has_value());
  EXPECT_TRUE(launch_nothing(*saxpy_of(device, ptx), nullptr).has_value());
  driver_.set_newest_ptx(70);
  const auto newer = device.load(ptx);
  ASSERT_FALSE(newer.has_value());
  EXPECT_EQ(newer.error().code, Code::LoadRejected);
  EXPECT_NE(newer.error().message.find("(222)"), std::string::npos) << newer.error().message;
}

TEST_F(CudaLoad, DriverRejectionsAreLoadErrors) {
  CudaDevice device(options());
  ASSERT_TRUE(device.devices().has_value());
  for (const int code : {200, 209, 218, 221, 222, 300}) {
    driver_.fail("cuLibraryLoadData", 1, static_cast<DriverResult>(code));
    EXPECT_EQ(device.load(artifact()).error().code, Code::LoadRejected) << code;
  }
  driver_.fail("cuLibraryLoadData", 1, DriverResult::OutOfMemory);
  EXPECT_EQ(device.load(artifact()).error().code, Code::Unavailable) << "not a fault of the artifact";
}

TEST_F(CudaLoad, RejectsTruncatedCubinsAndAcceptsAnyAlignment) {
  const std::string whole(artifact().bytes.view());
  ASSERT_TRUE(check_cubin(whole).has_value());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    ASSERT_FALSE(check_cubin(std::string_view(whole).substr(0, size)).has_value()) << size;
  }
  CudaDevice device(options());
  for (std::size_t shift = 0; shift < 4; ++shift) {
    Artifact shifted = artifact();
    shifted.bytes = Bytes::of(std::string(shift, 'x') + whole).slice(shift, whole.size());
    EXPECT_TRUE(device.load(shifted).has_value());
  }
}

class CudaLaunch : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    reset("sm_90");
    ASSERT_TRUE(device_.make_current(0).has_value());
    stream_ = device_.create_stream().value();
  }

  CudaDevice device_{options()};
  void* stream_ = nullptr;
};

TEST_F(CudaLaunch, PassesSizesStreamAndArgumentsToDriver) {
  const auto kernel = saxpy_of(device_, artifact(90));
  const unsigned n = 7;
  const float a = 2.5F;
  const cuda::DevicePointer x = 0x1234;
  const cuda::DevicePointer y = 0x5678;
  const Argument arguments[] = {argument_of(n), argument_of(a), argument_of(x), argument_of(y)};
  const LaunchConfig config(Grid(2, 3, 4), Block(32, 2), StreamRef::from_native(stream_), 1000);
  driver_.on_launch("saxpy", nullptr);
  ASSERT_TRUE(kernel->launch(config, arguments, 4).has_value());
  const auto launches = driver_.launches();
  ASSERT_EQ(launches.size(), 1U);
  const FakeCudaDriver::Launch& launch = launches[0];
  EXPECT_EQ(launch.kernel, "saxpy");
  EXPECT_EQ(launch.stream, stream_);
  EXPECT_EQ(std::vector<unsigned>(launch.grid, launch.grid + 3), (std::vector<unsigned>{2, 3, 4}));
  EXPECT_EQ(std::vector<unsigned>(launch.block, launch.block + 3), (std::vector<unsigned>{32, 2, 1}));
  EXPECT_EQ(launch.shared_bytes, 1000U);
  EXPECT_EQ(launch.argument<unsigned>(0), n);
  EXPECT_EQ(launch.argument<float>(1), a);
  EXPECT_EQ(launch.argument<cuda::DevicePointer>(2), x);
  EXPECT_EQ(launch.argument<cuda::DevicePointer>(3), y);
  EXPECT_TRUE(launch.attributes.empty());
}

TEST_F(CudaLaunch, PassesAllAttributesToDriver) {
  const auto kernel = saxpy_of(device_, artifact(90));
  LaunchConfig config(Grid(4), Block(1), StreamRef::from_native(stream_));
  config.cluster = {2, 1, 1};
  config.cooperative = true;
  config.programmatic = true;
  config.priority = -3;
  LaunchAttribute raw;
  raw.id = static_cast<unsigned>(LaunchAttributeId::MemorySyncDomain);
  raw.value[0] = 1;
  config.attributes = {raw};
  ASSERT_TRUE(launch_nothing(*kernel, config).has_value());
  std::map<LaunchAttributeId, std::vector<int>> values;
  const FakeCudaDriver::Launch launch = driver_.launches().at(0);
  for (const cuda::DriverLaunchAttribute& attribute : launch.attributes) {
    std::vector<int>& value = values[attribute.id];
    value.resize(3);
    std::memcpy(value.data(), attribute.value, 12);
  }
  const std::map<LaunchAttributeId, std::vector<int>> expected = {
      {LaunchAttributeId::ClusterDimension, {2, 1, 1}},
      {LaunchAttributeId::Cooperative, {1, 0, 0}},
      {LaunchAttributeId::ProgrammaticSerialization, {1, 0, 0}},
      {LaunchAttributeId::Priority, {-3, 0, 0}},
      {LaunchAttributeId::MemorySyncDomain, {1, 0, 0}}};
  EXPECT_EQ(values, expected);
  config.cluster = {2, 0, 1};
  EXPECT_EQ(launch_nothing(*kernel, config).error().code, Code::InvalidArgument);
}

TEST_F(CudaLaunch, RaisesSharedMemoryLimitOnce) {
  const auto kernel = saxpy_of(device_, artifact(90));
  LaunchConfig config = one_thread(stream_);
  for (const std::size_t kilobytes : {48U, 100U, 64U, 100U}) {
    config.shared_bytes = kilobytes << 10;
    ASSERT_TRUE(launch_nothing(*kernel, config).has_value()) << kilobytes;
  }
  EXPECT_EQ(driver_.calls("cuKernelSetAttribute"), 1U);
  EXPECT_TRUE(kernel->occupancy(64 << 10).has_value());
  for (const std::size_t bytes : {std::size_t{10} << 20, std::size_t{1} << 33}) {
    config.shared_bytes = bytes;
    EXPECT_EQ(launch_nothing(*kernel, config).error().code, Code::InvalidArgument) << bytes;
  }
}

TEST_F(CudaLaunch, RejectsWrongArgumentsBeforeDriver) {
  const auto kernel = saxpy_of(device_, artifact(90));
  const LaunchConfig config = one_thread(stream_);
  const double wide = 0;
  const Argument arguments[] = {argument_of(wide), argument_of(wide), argument_of(wide), argument_of(wide)};
  EXPECT_FALSE(kernel->launch(config, arguments, 4).has_value());
  EXPECT_FALSE(kernel->launch(config, arguments, 0).has_value());
  EXPECT_EQ(driver_.calls("cuLaunchKernelEx"), 0U);
}

TEST_F(CudaLaunch, GivenAllocatorReplacesDriverPool) {
  CudaDevice device({FakeCudaDriver::path(),
                     {[&](std::size_t bytes, StreamRef) -> Result<void*> {
                        cuda::DevicePointer memory = 0;
                        driver_.application().MemAlloc(&memory, bytes);
                        return reinterpret_cast<void*>(memory);
                      },
                      [&](void* memory, std::size_t, StreamRef) {
                        driver_.application().MemFree(reinterpret_cast<cuda::DevicePointer>(memory));
                      }}});
  {
    const DeviceFloats xs(device, stream_, {1, 2, 3});
    EXPECT_EQ(xs.values(), (std::vector<float>{1, 2, 3}));
  }
  EXPECT_EQ(driver_.calls("cuMemAllocAsync") + driver_.calls("cuMemFreeAsync"), 0U);
  EXPECT_EQ(driver_.calls("cuMemAlloc"), 1U);
  EXPECT_EQ(driver_.calls("cuMemFree"), 1U);
}

}  // namespace
}  // namespace kiln::test
