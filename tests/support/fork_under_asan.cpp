// fork() in a process of several threads, under the address sanitizer of clang 14: its allocator does not know of
// forks, as glibc's does. A child that is forked while another thread is inside it finds its locks taken for ever, and
// hangs at some later malloc. Newer sanitizers take these locks around a fork themselves; here the tests do.
#include <pthread.h>

// Of the sanitizer's own runtime, linked into each program. Absent from another release, they do nothing.
namespace __lsan {
__attribute__((weak)) void LockThreadRegistry();
__attribute__((weak)) void UnlockThreadRegistry();
__attribute__((weak)) void LockAllocator();
__attribute__((weak)) void UnlockAllocator();
}  // namespace __lsan
namespace __sanitizer {
__attribute__((weak)) void StackDepotLockAll();
__attribute__((weak)) void StackDepotUnlockAll();
}  // namespace __sanitizer

namespace {

void call(void (*function)()) {
  if (function != nullptr) function();
}

// In the order in which the sanitizer itself takes more than one of them.
void before_fork() {
  call(__lsan::LockThreadRegistry);
  call(__lsan::LockAllocator);
  call(__sanitizer::StackDepotLockAll);
}

void after_fork() {
  call(__sanitizer::StackDepotUnlockAll);
  call(__lsan::UnlockAllocator);
  call(__lsan::UnlockThreadRegistry);
}

// Before any other handler is registered: what comes first runs last before a fork and first after it, so that those of
// kiln may allocate.
__attribute__((constructor(101))) void register_handlers() { pthread_atfork(before_fork, after_fork, after_fork); }

}  // namespace
