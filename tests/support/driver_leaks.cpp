// OpenCL drivers keep what they allocated until the process ends, and nvJitLink a few bytes of every link that it
// refuses to begin: not our leaks, and the leak checker says so of itself.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libpocl\nleak:libLLVM\nleak:libclang-cpp\nleak:libhwloc\nleak:libOpenCL\nleak:libnvJitLink\n";
}
