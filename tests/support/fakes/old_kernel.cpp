// SPDX-License-Identifier: Apache-2.0
// Preloaded into a worker, it makes mmap ignore MAP_FIXED_NOREPLACE, as kernels before 4.17 and some emulators do: the
// address is then only a hint, and memory at another address is not an error.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdarg>

extern "C" __attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
  using Syscall = long (*)(long, ...);
  static const auto real = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  va_list more;
  va_start(more, number);
  long values[6];
  for (long& value : values) value = va_arg(more, long);
  va_end(more);
  if (number == SYS_mmap) values[3] &= ~static_cast<long>(MAP_FIXED_NOREPLACE);
  return real(number, values[0], values[1], values[2], values[3], values[4], values[5]);
}
