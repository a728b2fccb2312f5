// SPDX-License-Identifier: Apache-2.0
// NVIDIA's CCCL library allocates part of the data that it reads from a blob with malloc and frees it with delete,
// which is harmless because both belong to the C library. This option keeps the address sanitizer from ending the
// program. NVRTC and nvJitLink keep a few bytes until the process ends.
extern "C" const char* kiln_asan_options();
const char* kiln_asan_options() { return "alloc_dealloc_mismatch=0:use_sigaltstack=0"; }
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions() {
  return "leak:libcccl\nleak:libnvrtc\nleak:libnvJitLink\n";
}
