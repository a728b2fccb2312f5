// SPDX-License-Identifier: Apache-2.0
#include "support/fakes/faulty_calls.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

namespace kiln::test {
namespace {

Fault* fault = nullptr;
int seen = 0;
int hit = 0;
bool network = false;
int written = 0;

bool fails(const char* call) {
  if (fault == nullptr || fault->call != call) return false;
  const int number = seen++;
  if (number < fault->skip || (fault->times >= 0 && number >= fault->skip + fault->times)) return false;
  ++hit;
  errno = fault->error;
  return true;
}

}  // namespace

FaultInjection::FaultInjection(Fault injected) {
  seen = 0;
  hit = 0;
  fault = new Fault(std::move(injected));
}
FaultInjection::~FaultInjection() {
  delete fault;
  fault = nullptr;
}
int FaultInjection::met() const { return hit; }

OnNetwork::OnNetwork() {
  network = true;
  written = 0;
}
OnNetwork::~OnNetwork() { network = false; }
int OnNetwork::writes() const { return written; }

}  // namespace kiln::test

using namespace kiln::test;

extern "C" {
long __real_syscall(long number, ...);
int __real_openat(int directory, const char* path, int flags, ...);
ssize_t __real_read(int fd, void* buffer, size_t size);
ssize_t __real_write(int fd, const void* buffer, size_t size);
int __real_fstat(int fd, struct stat* status);
int __real_close(int fd);
int __real_mkdirat(int directory, const char* path, mode_t mode);
int __real_renameat(int from, const char* old_name, int to, const char* new_name);
int __real_fstatfs(int fd, struct statfs* status);
int __real_futimens(int fd, const struct timespec* times);

// The C library has no function for openat2; a fault of openat applies to openat2 too. Callers pass as many arguments
// as the call needs; the others are read too, which the sanitizer would report, but have no effect.
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...) {
  if (number == SYS_openat2 && (fails("openat2") || fails("openat"))) return -1;
  va_list rest;
  va_start(rest, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(rest, long);
  va_end(rest);
  return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
}
int __wrap_openat(int directory, const char* path, int flags, ...) {
  if (fails("openat")) return -1;
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return __real_openat(directory, path, flags, mode);
}
ssize_t __wrap_read(int fd, void* buffer, size_t size) { return fails("read") ? -1 : __real_read(fd, buffer, size); }
ssize_t __wrap_write(int fd, const void* buffer, size_t size) {
  ++written;
  return fails("write") ? -1 : __real_write(fd, buffer, size);
}
int __wrap_fstat(int fd, struct stat* status) { return fails("fstat") ? -1 : __real_fstat(fd, status); }
int __wrap_close(int fd) {
  const bool failed = fails("close");
  const int error = errno;
  const int result = __real_close(fd);
  if (!failed) return result;
  errno = error;
  return -1;
}
int __wrap_mkdirat(int directory, const char* path, mode_t mode) {
  ++written;
  return fails("mkdirat") ? -1 : __real_mkdirat(directory, path, mode);
}
int __wrap_renameat(int from, const char* old_name, int to, const char* new_name) {
  ++written;
  if (!fails("renameat")) return __real_renameat(from, old_name, to, new_name);
  if (fault->done) {
    const int error = errno;
    (void)__real_renameat(from, old_name, to, new_name);
    errno = error;
  }
  return -1;
}
int __wrap_fstatfs(int fd, struct statfs* status) {
  const int result = __real_fstatfs(fd, status);
  if (network) status->f_type = NFS_SUPER_MAGIC;
  return result;
}
int __wrap_futimens(int fd, const struct timespec* times) {
  ++written;
  return __real_futimens(fd, times);
}
}
