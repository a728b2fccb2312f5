// SPDX-License-Identifier: Apache-2.0
// Leak suppressions: OpenCL drivers keep their allocations until the process ends, and nvJitLink keeps a few bytes of
// every link that it rejects. These are not leaks of kiln.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libpocl\nleak:libLLVM\nleak:libclang-cpp\nleak:libhwloc\nleak:libOpenCL\nleak:libnvJitLink\n";
}
