// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <vector>

#include "backends/opencl/opencl_compiler.hpp"
#include "base/files/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/forked.hpp"

namespace kiln::test {
namespace {

// Returns y after saxpy(2, x, y), computed by a process without the source; empty if OpenCL failed.
std::vector<float> run_saxpy(const Bytes& binary, std::vector<float> x, std::vector<float> y) {
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  if (clGetPlatformIDs(1, &platform, nullptr) != CL_SUCCESS) return {};
  if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr) != CL_SUCCESS) return {};
  cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, nullptr);
  const unsigned char* data = binary.data();
  const std::size_t size = binary.size();
  cl_program program = clCreateProgramWithBinary(context, 1, &device, &size, &data, nullptr, nullptr);
  if (program == nullptr || clBuildProgram(program, 1, &device, "", nullptr, nullptr) != CL_SUCCESS) return {};
  cl_kernel kernel = clCreateKernel(program, "saxpy", nullptr);
  const std::size_t bytes = x.size() * sizeof(float);
  cl_mem xs = clCreateBuffer(context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, x.data(), nullptr);
  cl_mem ys = clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, bytes, y.data(), nullptr);
  const cl_uint n = static_cast<cl_uint>(x.size());
  const float a = 2;
  clSetKernelArg(kernel, 0, sizeof n, &n);
  clSetKernelArg(kernel, 1, sizeof a, &a);
  clSetKernelArg(kernel, 2, sizeof xs, &xs);
  clSetKernelArg(kernel, 3, sizeof ys, &ys);
  const std::size_t items = 64;  // more than the number of elements
  if (clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr) != CL_SUCCESS) return {};
  if (clEnqueueReadBuffer(queue, ys, CL_TRUE, 0, bytes, y.data(), 0, nullptr, nullptr) != CL_SUCCESS) return {};
  return y;
}

TEST(OpenClArtifact, RunsInAnotherProcess) {
  const TemporaryDirectory directory;
  setenv("POCL_CACHE_DIR", directory.path().c_str(), 1);
  setenv("POCL_KERNEL_CACHE", "0", 1);
  const Unit plain = Unit::opencl("saxpy.cl", repository_text("examples/kernels/saxpy.cl")).with_entry("saxpy");
  const Unit with_header = Unit::opencl("saxpy.cl", "#include \"saxpy.h\"\n").with_header("saxpy.h", plain.source());
  for (const Unit& unit : {plain, with_header.with_entry("saxpy")}) {
    const std::string path = directory.path("binary");
    Forked compiling([&](const Forked::Side& side) {
      OpenClCompiler compiler;
      const auto compiled = compiler.compile(recipe_for(compiler, unit, compiler.device().value().target), {});
      if (!compiled) return side.say(compiled.error().message + compiled.error().log);
      std::ofstream(path, std::ios::binary) << compiled->artifact.bytes.view();
      side.say("compiled");
    });
    ASSERT_EQ(compiling.line(std::chrono::seconds(60)), "compiled");
    Forked running([&](const Forked::Side& side) {
      const auto bytes = read_file(path);
      const auto y = run_saxpy(**bytes, {1, 2, 3}, {10, 20, 30});
      side.say(y == std::vector<float>{12, 24, 36} ? "right" : "wrong");
    });
    EXPECT_EQ(running.line(std::chrono::seconds(60)), "right");
  }
}

}  // namespace
}  // namespace kiln::test
