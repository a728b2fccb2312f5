// SPDX-License-Identifier: Apache-2.0
// fork() in a process with several threads and the address sanitizer of clang 14, whose allocator does not handle
// forks, unlike glibc's. If a child is forked while another thread is in the allocator, its locks stay locked in the
// child, which hangs at a later malloc. Newer sanitizers acquire these locks around a fork themselves; here the tests
// do.
#include <pthread.h>

// Functions of the sanitizer's runtime, which is linked into each program. If a release lacks them, they do nothing.
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

// In the order in which the sanitizer itself acquires several of them.
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

// Registered before any other handler: the first registered handler runs last before a fork and first after it, so that
// kiln's handlers can allocate.
__attribute__((constructor(101))) void register_handlers() { pthread_atfork(before_fork, after_fork, after_fork); }

}  // namespace

// Additional options of a program; null if it has none.
extern "C" __attribute__((weak)) const char* kiln_asan_options();

// LLVM, which PoCL uses in this process, sets an alternate signal stack for the thread that first enters it. The
// sanitizer would unmap that stack as its own when the thread ends, and abort. It needs no such stack here.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();
const char* __asan_default_options() {
  return kiln_asan_options != nullptr ? kiln_asan_options() : "use_sigaltstack=0";
}
