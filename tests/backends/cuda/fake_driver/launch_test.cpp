// SPDX-License-Identifier: Apache-2.0
// Launches on the driver double: what it records, what it rejects, and kernels that run on the host.
#include <cstring>
#include <numeric>

#include "fixture.hpp"

namespace kiln::test {
namespace {

using cuda::DevicePointer;
using cuda::Library;
using cuda::Stream;

using FakeLaunching = FakeFixture;

TEST_F(FakeLaunching, LaunchIsRecordedWithArguments) {
  const Stream on = stream();
  cuda::DriverLaunchAttribute attribute;
  attribute.id = cuda::LaunchAttributeId::Priority;
  attribute.value[0] = 3;
  cuda::DriverLaunchConfig config;
  config.grid_x = 5;
  config.block_y = 7;
  config.shared_bytes = 256;
  config.stream = on;
  config.attributes = &attribute;
  config.attribute_count = 1;
  unsigned n = 1000;
  float a = 2.5F;
  DevicePointer x = memory(4);
  DevicePointer y = x;
  void* arguments[] = {&n, &a, &x, &y};
  ASSERT_EQ(cu.LaunchKernelEx(&config, cuda::as_function(kernel(loaded(), "saxpy")), arguments, nullptr), R::Success);
  n = 1;
  const FakeCudaDriver::Launch launched = driver_.launches().at(0);
  EXPECT_EQ(launched.kernel, "saxpy");
  EXPECT_EQ(launched.stream, on);
  EXPECT_EQ(launched.grid[0], 5u);
  EXPECT_EQ(launched.block[1], 7u);
  EXPECT_EQ(launched.shared_bytes, 256u);
  EXPECT_EQ(launched.argument<unsigned>(0), 1000u);
  EXPECT_EQ(launched.argument<float>(1), 2.5F);
  EXPECT_EQ(launched.argument<DevicePointer>(3), y);
  EXPECT_EQ(launched.attributes.at(0).value[0], 3);
  unsigned long long id = 0;
  EXPECT_EQ(cu.CtxGetId(nullptr, &id), R::Success);
  EXPECT_EQ(launched.context, id);
}

void saxpy_on_host(const FakeLaunch* launch, void*) {
  unsigned n;
  float a;
  DevicePointer x;
  DevicePointer y;
  std::memcpy(&n, launch->arguments[0].data, sizeof n);
  std::memcpy(&a, launch->arguments[1].data, sizeof a);
  std::memcpy(&x, launch->arguments[2].data, sizeof x);
  std::memcpy(&y, launch->arguments[3].data, sizeof y);
  const auto* from = static_cast<const float*>(launch->host(x, n * sizeof(float)));
  auto* to = static_cast<float*>(launch->host(y, n * sizeof(float)));
  for (unsigned i = 0; from != nullptr && to != nullptr && i < n; ++i) to[i] += a * from[i];
}

TEST_F(FakeLaunching, HostKernelRunsWithItsStream) {
  driver_.on_launch("saxpy", saxpy_on_host);
  const Stream on = stream();
  std::vector<float> x(100);
  std::iota(x.begin(), x.end(), 0.0F);
  std::vector<float> y(100, 1.0F);
  unsigned n = 100;
  float a = 2;
  DevicePointer dx = memory(400);
  DevicePointer dy = memory(400);
  cu.MemcpyHtoDAsync(dx, x.data(), 400, on);
  cu.MemcpyHtoDAsync(dy, y.data(), 400, on);
  ASSERT_EQ(launch(kernel(loaded(), "saxpy"), on, {&n, &a, &dx, &dy}), R::Success);
  cu.MemcpyDtoHAsync(y.data(), dy, 400, on);
  EXPECT_EQ(y[99], 1.0F);
  EXPECT_EQ(cu.StreamSynchronize(on), R::Success);
  EXPECT_EQ(y[0], 1.0F);
  EXPECT_EQ(y[99], 199.0F);
}

TEST_F(FakeLaunching, RejectsInvalidLaunches) {
  const Library library = loaded();
  const auto with = [&](const char* name, auto change) {
    cuda::DriverLaunchConfig config;
    change(config);
    void* arguments[8] = {};
    char bytes[512] = {};
    for (void*& argument : arguments) argument = bytes;
    return cu.LaunchKernelEx(&config, cuda::as_function(kernel(library, name)), arguments, nullptr);
  };
  EXPECT_EQ(with("mixed", [](auto& c) { c.block_x = 128; }), R::Success);
  EXPECT_EQ(with("mixed", [](auto& c) { c.block_x = 129; }), R::InvalidValue);
  EXPECT_EQ(with("nothing", [](auto& c) { c.block_x = 1025; }), R::InvalidValue);
  EXPECT_EQ(with("nothing", [](auto& c) { c.grid_x = 0; }), R::InvalidValue);
  EXPECT_EQ(with("nothing", [](auto& c) { c.grid_y = 65536; }), R::InvalidValue);
  EXPECT_EQ(with("nothing", [](auto& c) { c.shared_bytes = 49 << 10; }), R::InvalidValue);
  const auto limit = cuda::FunctionAttribute::MaxDynamicSharedBytes;
  EXPECT_EQ(cu.KernelSetAttribute(limit, 200 << 10, kernel(library, "nothing"), 0), R::InvalidValue);
  EXPECT_EQ(cu.KernelSetAttribute(limit, 100 << 10, kernel(library, "nothing"), 0), R::Success);
  EXPECT_EQ(with("nothing", [](auto& c) { c.shared_bytes = 49 << 10; }), R::Success);
  cuda::DriverLaunchConfig config;
  EXPECT_EQ(cu.LaunchKernelEx(&config, cuda::as_function(kernel(library, "saxpy")), nullptr, nullptr), R::InvalidValue);
  EXPECT_EQ(driver_.launches().size(), 2u);
}

TEST_F(FakeLaunching, RejectsUnsupportedClustersAndTooLargeCooperativeLaunches) {
  cuda::DriverLaunchAttribute attribute;
  attribute.id = cuda::LaunchAttributeId::ClusterDimension;
  const unsigned cluster[3] = {2, 1, 1};
  std::memcpy(attribute.value, cluster, sizeof cluster);
  cuda::DriverLaunchConfig config;
  config.grid_x = 4;
  config.attributes = &attribute;
  config.attribute_count = 1;
  const auto on_80 = cuda::as_function(kernel(loaded("sm_80"), "nothing"));
  const auto on_90 = cuda::as_function(kernel(loaded("sm_90"), "nothing"));
  EXPECT_EQ(cu.LaunchKernelEx(&config, on_80, nullptr, nullptr), R::InvalidValue);
  cu.CtxSetCurrent(primary(2));
  EXPECT_EQ(cu.LaunchKernelEx(&config, on_90, nullptr, nullptr), R::Success);
  config.grid_x = 5;
  EXPECT_EQ(cu.LaunchKernelEx(&config, on_90, nullptr, nullptr), R::InvalidClusterSize);
  attribute.id = cuda::LaunchAttributeId::Cooperative;
  EXPECT_EQ(cu.LaunchKernelEx(&config, on_90, nullptr, nullptr), R::Success);
  config.grid_x = 1 << 20;
  EXPECT_EQ(cu.LaunchKernelEx(&config, on_90, nullptr, nullptr), R::CooperativeLaunchTooLarge);
}

TEST_F(FakeLaunching, OccupancyRespectsKernelLimits) {
  int grid = 0;
  int block = 0;
  const auto mixed = cuda::as_function(kernel(loaded(), "mixed"));
  EXPECT_EQ(cu.OccupancyMaxPotentialBlockSize(&grid, &block, mixed, nullptr, 0, 0), R::Success);
  EXPECT_GT(block, 0);
  EXPECT_LE(block, 128);
  EXPECT_EQ(grid % 108, 0);
  int blocks = 0;
  EXPECT_EQ(cu.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, mixed, block, 0), R::Success);
  EXPECT_EQ(grid, blocks * 108);
}

}  // namespace
}  // namespace kiln::test
