#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compile/nvrtc_compiler.hpp"
#include "support/driver_double/control.hpp"
#include "support/recipes.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {

using cuda::CaptureMode;
using cuda::CaptureStatus;
using cuda::DriverResult;

/// Kernels with what a driver must know of one: parameters of all sizes, shared memory, a limit of threads.
inline std::string double_kernels() {
  return repository_text("kernels/saxpy.cu") +
         "struct Big { char bytes[300]; };\n"
         "struct Huge { char bytes[8000]; };\n"
         "extern \"C\" __global__ void __launch_bounds__(128) mixed(unsigned char a, double b, const float* x, Big c) {\n"
         "  __shared__ float tile[256];\n"
         "  tile[threadIdx.x] = x[threadIdx.x];\n"
         "  __syncthreads();\n"
         "  const_cast<float*>(x)[0] = tile[threadIdx.x ^ 1] + a + b + c.bytes[threadIdx.x];\n"
         "}\n"
         "extern \"C\" __global__ void nothing() {}\n"
         "extern \"C\" __global__ void huge(Huge h, float* y) { y[threadIdx.x] = h.bytes[threadIdx.x]; }\n";
}

/// Those kernels, really compiled, once for each target and kind in the life of the program.
inline const std::string& compiled_kernels(const Target& target) {
  static std::map<std::string, std::string> known;
  std::string& bytes = known[target.name()];
  if (bytes.empty()) {
    static FileDigests digests{std::string()};
    NvrtcCompiler compiler(toolkit_nvrtc(), digests);
    const Unit unit = Unit::cuda("double.cu", double_kernels());
    bytes = std::string(compiler.compile(recipe_for(compiler, unit, target)).value().artifact.bytes.view());
  }
  return bytes;
}

}  // namespace kiln::test
