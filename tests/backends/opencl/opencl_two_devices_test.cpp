// SPDX-License-Identifier: Apache-2.0
// A separate program, because PoCL lists its devices once per process.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/opencl/opencl_compiler.hpp"
#include "backends/opencl/opencl_device.hpp"
#include "support/fixtures/device_floats.hpp"
#include "support/fixtures/recipes.hpp"

namespace kiln::test {
namespace {

TEST(OpenClDevice, OneLoadServesTwoDevicesOfOneTarget) {
  setenv("POCL_DEVICES", "pthread pthread", 1);
  OpenClCompiler compiler;
  const Unit unit = Unit::opencl("saxpy.cl", repository_text("examples/kernels/saxpy.cl")).with_entry("scale");
  const Artifact artifact =
      compiler.compile(recipe_for(compiler, unit, compiler.device().value().target), {}).value().artifact;
  OpenClDevice device({});
  const auto devices = device.devices().value();
  ASSERT_EQ(devices.size(), 2U);
  ASSERT_EQ(devices[0].target, devices[1].target);
  const auto kernel = device.load(artifact).value()->kernel("scale").value();
  for (const std::size_t number : {0U, 1U}) {
    ASSERT_TRUE(device.make_current(number).has_value());
    EXPECT_EQ(device.current_context()->device, number);
    void* const stream = device.create_stream().value();
    const LaunchConfig config(Grid(1), Block(4), StreamRef::from_native(stream));
    {
      const DeviceFloats xs(device, stream, {1, 2, 3});
      const unsigned n = 3;
      const float a = 2;
      const Argument arguments[] = {argument_of(n), argument_of(a), xs.argument()};
      ASSERT_TRUE(kernel->launch(config, arguments, 3).has_value());
      EXPECT_EQ(xs.values(), (std::vector<float>{2, 4, 6}));
    }
    EXPECT_TRUE(device.release_stream(stream).has_value());
  }
}

}  // namespace
}  // namespace kiln::test
