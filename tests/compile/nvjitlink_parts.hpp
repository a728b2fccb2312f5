#pragma once

#include <string>

#include "compile/nvjitlink_compiler.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "support/recipes.hpp"
#include "support/toolkit.hpp"

namespace kiln::test {

/// One for all tests of a process: digesting the two libraries takes a while.
inline FileDigests& library_digests() {
  static FileDigests digests{std::string()};
  return digests;
}

/// Two kernels, of which the first calls what kCallee has.
inline constexpr const char* kCaller =
    "extern __device__ float f(float);\n"
    "extern \"C\" __global__ void k(float* p) { *p = f(*p); }\n"
    "extern \"C\" __global__ void l(int* p) { *p = 3; }\n";
inline constexpr const char* kCallee = "__device__ float f(float x) { return x * x + 1; }\n";

inline std::unique_ptr<NvJitLinkCompiler> toolkit_linker() {
  return std::make_unique<NvJitLinkCompiler>(std::string(), toolkit_nvrtc(), library_digests());
}

/// What NVRTC makes of a unit; a compile that fails ends the test by an exception.
inline Bytes compiled_bytes(const Unit& unit, const Target& target) {
  NvrtcCompiler nvrtc(toolkit_nvrtc(), library_digests());
  return nvrtc.compile(recipe_for(nvrtc, unit, target)).value().artifact.bytes;
}
inline Bytes ltoir_of(const std::string& name, const std::string& source) {
  return compiled_bytes(Unit::cuda(name, source), Target::parse("lto_80").value());
}

}  // namespace kiln::test
