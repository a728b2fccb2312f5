// A program of its own: PoCL asks for its devices once in a process.
#include <gtest/gtest.h>

#include <cstdlib>

#include "compile/opencl_compiler.hpp"
#include "device/opencl_device.hpp"
#include "support/device_floats.hpp"
#include "support/recipes.hpp"

namespace kiln::test {
namespace {

TEST(OpenClDevice, OneLoadServesTwoDevicesOfOneTargetAndTheChosenOneIsThePlace) {
  setenv("POCL_DEVICES", "pthread pthread", 1);
  OpenClCompiler compiler;
  const Unit unit = Unit::opencl("saxpy.cl", repository_text("kernels/saxpy.cl")).entry("scale");
  const Artifact artifact =
      compiler.compile(recipe_for(compiler, unit, compiler.device().value().target)).value().artifact;
  OpenClDevice device({});
  const auto devices = device.devices().value();
  ASSERT_EQ(devices.size(), 2U);
  ASSERT_EQ(devices[0].target, devices[1].target);
  const auto kernel = device.load(artifact).value()->kernel("scale").value();
  for (const std::size_t number : {0U, 1U}) {
    ASSERT_TRUE(device.make_current(number).ok());
    EXPECT_EQ(device.current()->device, number);
    Launch how;
    how.stream = device.make_stream().value();
    how.block.x = 4;
    {
      const DeviceFloats xs(device, how.stream, {1, 2, 3});
      const unsigned n = 3;
      const float a = 2;
      const Argument arguments[] = {argument_of(n), argument_of(a), xs.argument()};
      ASSERT_TRUE(kernel->launch(how, arguments, 3).ok());
      EXPECT_EQ(xs.values(), (std::vector<float>{2, 4, 6}));
    }
    EXPECT_TRUE(device.release_stream(how.stream).ok());
  }
}

}  // namespace
}  // namespace kiln::test
