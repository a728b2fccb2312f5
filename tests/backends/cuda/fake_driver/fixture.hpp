// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "backends/cuda/nvrtc_compiler.hpp"
#include "support/fakes/cuda_driver/control.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {

/// Kernels with the properties that a driver must know: parameters of all sizes, shared memory, a limit of threads.
inline std::string double_kernels() {
  return repository_text("examples/kernels/saxpy.cu") +
         "struct Big { char bytes[300]; };\n"
         "struct Huge { char bytes[8000]; };\n"
         "extern \"C\" __global__ void __launch_bounds__(128) mixed(unsigned char a, double b, const float* x, Big c) "
         "{\n"
         "  __shared__ float tile[256];\n"
         "  tile[threadIdx.x] = x[threadIdx.x];\n"
         "  __syncthreads();\n"
         "  const_cast<float*>(x)[0] = tile[threadIdx.x ^ 1] + a + b + c.bytes[threadIdx.x];\n"
         "}\n"
         "extern \"C\" __global__ void nothing() {}\n"
         "extern \"C\" __global__ void huge(Huge h, float* y) { y[threadIdx.x] = h.bytes[threadIdx.x]; }\n";
}

/// Returns these kernels, compiled once per target in a process. "compute_80" results in PTX.
inline const std::string& compiled_kernels(const std::string& target) {
  static std::map<std::string, std::string> known;
  std::string& bytes = known[target];
  if (bytes.empty()) {
    static FileDigestCache digests{std::string()};
    NvrtcCompiler compiler(toolkit_nvrtc(), digests);
    const Recipe recipe =
        recipe_for(compiler, Unit::cuda("double.cu", double_kernels()), Target::parse(target).value());
    bytes = std::string(compiler.compile(recipe, {}).value().artifact.bytes.view());
  }
  return bytes;
}

/// A driver double with two architectures and the primary context of device 0 (an sm_80) current.
class FakeFixture : public testing::Test {
 protected:
  using R = cuda::DriverResult;

  void SetUp() override {
    if (toolkit_nvrtc().empty()) GTEST_SKIP() << "no CUDA toolkit (CUDA_HOME, or nvcc on the PATH)";
    ASSERT_EQ(cu.Init(0), R::Success);
    context_ = primary(0);
    ASSERT_EQ(cu.CtxSetCurrent(context_), R::Success);
  }
  cuda::Context primary(int device) {
    cuda::Context context = nullptr;
    EXPECT_EQ(cu.DevicePrimaryCtxRetain(&context, device), R::Success);
    return context;
  }
  R load(const std::string& image, cuda::Library* library) {
    return cu.LibraryLoadData(library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  cuda::Library loaded(const std::string& target = "sm_80") {
    cuda::Library library = nullptr;
    EXPECT_EQ(load(compiled_kernels(target), &library), R::Success);
    return library;
  }
  cuda::Kernel kernel(cuda::Library library, const char* name) {
    cuda::Kernel found = nullptr;
    EXPECT_EQ(cu.LibraryGetKernel(&found, library, name), R::Success) << name;
    return found;
  }
  cuda::Stream stream(unsigned flags = cuda::kStreamNonBlocking) {
    cuda::Stream made = nullptr;
    EXPECT_EQ(cu.StreamCreate(&made, flags), R::Success);
    return made;
  }
  cuda::DevicePointer memory(std::size_t bytes) {
    cuda::DevicePointer made = 0;
    EXPECT_EQ(app.MemAlloc(&made, bytes), R::Success);
    return made;
  }
  R launch(cuda::Kernel of, cuda::Stream on, std::vector<void*> arguments = {}) {
    cuda::DriverLaunchConfig config;
    config.stream = on;
    return cu.LaunchKernelEx(&config, cuda::as_function(of), arguments.data(), nullptr);
  }

  FakeCudaDriver driver_{"sm_80,sm_80,sm_90,sm_90"};
  const cuda::DriverFunctions cu = driver_.driver();
  const ApplicationFunctions app = driver_.application();
  cuda::Context context_ = nullptr;
};

}  // namespace kiln::test
