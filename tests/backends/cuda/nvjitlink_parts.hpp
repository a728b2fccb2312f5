// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/cuda/nvjitlink_compiler.hpp"
#include "backends/cuda/nvrtc_compiler.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/toolkit.hpp"

namespace kiln::test {

/// Returns one instance for all tests of a process, because digesting the two libraries is slow.
inline FileDigestCache& library_digests() {
  static FileDigestCache digests{std::string()};
  return digests;
}

/// Two kernels. The first calls a function of kCallee.
inline constexpr const char* kCaller =
    "extern __device__ float f(float);\n"
    "extern \"C\" __global__ void k(float* p) { *p = f(*p); }\n"
    "extern \"C\" __global__ void l(int* p) { *p = 3; }\n";
inline constexpr const char* kCallee = "__device__ float f(float x) { return x * x + 1; }\n";

inline std::unique_ptr<NvJitLinkCompiler> toolkit_linker() {
  return std::make_unique<NvJitLinkCompiler>(std::string(), toolkit_nvrtc(), library_digests());
}

/// Returns NVRTC's output for a unit. A failed compile throws.
inline Bytes compiled_bytes(const Unit& unit, const Target& target) {
  NvrtcCompiler nvrtc(toolkit_nvrtc(), library_digests());
  return nvrtc.compile(recipe_for(nvrtc, unit, target), {}).value().artifact.bytes;
}
inline Bytes ltoir_of(const std::string& name, const std::string& source) {
  return compiled_bytes(Unit::cuda(name, source), Target::parse("lto_80").value());
}

}  // namespace kiln::test
