// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "backends/cuda/cuda_device.hpp"
#include "backends/cuda/nvrtc_compiler.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {

/// Returns the compiled examples/kernels/saxpy.cu, compiled once per target in a process.
inline const Artifact& cuda_artifact(const Target& target) {
  static std::map<std::string, Artifact> known;
  Artifact& artifact = known[target.name()];
  if (artifact.bytes.empty()) {
    static FileDigestCache digests{std::string()};
    NvrtcCompiler compiler(toolkit_nvrtc(), digests);
    const Unit unit = Unit::cuda("saxpy.cu", repository_text("examples/kernels/saxpy.cu"))
                          .with_entry("saxpy")
                          .with_entry("scale<float>");
    artifact = compiler.compile(recipe_for(compiler, unit, target), {}).value().artifact;
    for (EntryPoint& entry : artifact.entries) entry.name = entry.name.substr(0, entry.name.find('<'));
  }
  return artifact;
}

/// Host implementation of the kernels in examples/kernels/saxpy.cu: the driver double runs no device code.
template <bool kAddsToY>
void host_kernel(const FakeLaunch* launch, void* /*user*/) {
  const auto argument = [&](std::size_t index, auto value) {
    std::memcpy(&value, launch->arguments[index].data, sizeof value);
    return value;
  };
  const unsigned n = std::min(argument(0, 0U), launch->grid[0] * launch->block[0]);
  const float a = argument(1, 0.0F);
  auto* x = static_cast<float*>(launch->host(argument(2, cuda::DevicePointer{}), n * sizeof(float)));
  float* y = kAddsToY ? static_cast<float*>(launch->host(argument(3, cuda::DevicePointer{}), n * sizeof(float))) : x;
  if (x == nullptr || y == nullptr) return;
  for (unsigned i = 0; i < n; ++i) y[i] = kAddsToY ? a * x[i] + y[i] : a * x[i];
}

inline void run_on_the_host(FakeCudaDriver& driver) {
  driver.on_launch("saxpy", &host_kernel<true>);
  driver.on_launch("_Z5scaleIfEvjT_PS0_", &host_kernel<false>);
}

/// A fixture with a driver double and a device. Skips if nothing can be compiled.
class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    run_on_the_host(driver_);
  }
  void reset(const std::string& devices) {
    driver_.reset(devices);
    run_on_the_host(driver_);
  }
  static CudaDevice::Options options() { return {FakeCudaDriver::path(), {}}; }
  const Artifact& artifact(int number = 80) { return cuda_artifact(Target::sm(number)); }
  static std::shared_ptr<DeviceKernel> saxpy_of(Device& device, const Artifact& from) {
    return device.load(from).value()->kernel("saxpy").value();
  }
  /// Creates a context without kiln and makes it current in this thread.
  cuda::Context make_context(int device) {
    cuda::Context context = nullptr;
    EXPECT_EQ(driver_.driver().Init(0), cuda::DriverResult::Success);
    EXPECT_EQ(driver_.application().CtxCreate(&context, 0, device), cuda::DriverResult::Success);
    return context;
  }
  static LaunchConfig one_thread(void* stream) { return {Grid(1), Block(1), StreamRef::from_native(stream)}; }
  /// Launches with n = 0.
  static Status launch_nothing(DeviceKernel& kernel, void* stream) {
    return launch_nothing(kernel, one_thread(stream));
  }
  static Status launch_nothing(DeviceKernel& kernel, const LaunchConfig& config) {
    const unsigned n = 0;
    const float a = 0;
    void* const none = nullptr;
    const Argument arguments[] = {argument_of(n), argument_of(a), argument_of(none), argument_of(none)};
    return kernel.launch(config, arguments, 4);
  }

  FakeCudaDriver driver_{"sm_80"};
};

}  // namespace kiln::test
