// NVIDIA's CCCL library allocates part of what it reads from a blob by malloc and gives it back by delete, which is its
// own affair and harmless where both are the C library's: the address sanitizer is told not to end the program over it.
// NVRTC and nvJitLink keep a few bytes of what they did until the process ends.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "alloc_dealloc_mismatch=0";
}
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libcccl\nleak:libnvrtc\nleak:libnvJitLink\n";
}
