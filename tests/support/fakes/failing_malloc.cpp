// SPDX-License-Identifier: Apache-2.0
#include "support/fakes/failing_malloc.hpp"

#include <cerrno>
#include <cstdlib>

#include <atomic>

// glibc's allocator under the names that it exports for programs that replace malloc. operator new calls malloc and
// throws if it fails.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);
}

namespace {

constinit std::atomic<std::uint64_t> count{0};
constinit std::atomic<std::uint64_t> first{0};  // 0 means that no allocation fails
constinit std::atomic<std::uint64_t> last{0};
constinit std::atomic<std::uint64_t> failed{0};
constinit std::atomic<std::int64_t> in_use{0};
constinit thread_local int spared = 0;

bool fails() {
  if (spared != 0) return false;
  const std::uint64_t number = count.fetch_add(1) + 1;
  const std::uint64_t from = first.load();
  if (from == 0 || number < from || number > last.load()) return false;
  failed.fetch_add(1);
  errno = ENOMEM;
  return true;
}

void* counted(void* block) {
  if (block != nullptr) in_use.fetch_add(1);
  return block;
}

}  // namespace

// Exported, so that libstdc++ and other libraries call these. Clang would hide them because of -fvisibility=hidden.
#pragma GCC visibility push(default)
extern "C" {

void* malloc(size_t size) { return fails() ? nullptr : counted(__libc_malloc(size)); }
void* calloc(size_t number, size_t size) { return fails() ? nullptr : counted(__libc_calloc(number, size)); }
void* realloc(void* block, size_t size) {
  if (fails()) return nullptr;
  void* const moved = __libc_realloc(block, size);
  return block == nullptr ? counted(moved) : moved;
}
void* memalign(size_t alignment, size_t size) { return fails() ? nullptr : counted(__libc_memalign(alignment, size)); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** place, size_t alignment, size_t size) {
  void* const block = memalign(alignment, size);
  if (block == nullptr) return ENOMEM;
  *place = block;
  return 0;
}
void free(void* block) {
  if (block == nullptr) return;
  in_use.fetch_sub(1);
  __libc_free(block);
}
}
#pragma GCC visibility pop

namespace kiln::test {

void Heap::fail_at(std::uint64_t number, Mode mode) {
  first = 0;
  failed = 0;
  count = 0;
  last = mode == Mode::Once ? number : UINT64_MAX;
  first = number;
}

std::uint64_t Heap::give_back() {
  first = 0;
  return failed;
}

std::uint64_t Heap::asked() { return count; }

std::int64_t Heap::live() { return in_use; }

Heap::Spared::Spared() { ++spared; }
Heap::Spared::~Spared() { --spared; }

}  // namespace kiln::test
