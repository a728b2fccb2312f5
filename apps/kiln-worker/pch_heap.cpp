// SPDX-License-Identifier: Apache-2.0
// The worker's own mmap, which places NVRTC's memory for precompiled headers at an address that all workers use.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "interpose.hpp"

namespace {

// Far from the addresses that the kernel, sanitizers and the loader use, with or without randomization.
constexpr std::uintptr_t kPchHeap = 0x2000'0000'0000;
std::atomic<std::size_t> pch_heap_size{0};
std::atomic<bool> pch_heap_placed{false};

// True if the heap is still a single mapping.
bool pch_heap_whole = false;

bool is_in_pch_heap(const void* address, std::size_t size) {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t whole = pch_heap_size.load(std::memory_order_relaxed);
  return pch_heap_placed && start >= kPchHeap && size <= whole && start - kPchHeap <= whole - size;
}

bool copy_from(int fd, off_t offset, void* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = pread(fd, static_cast<char*>(to) + done, size - done, offset + static_cast<off_t>(done));
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

// Keeps the heap a single mapping. NVRTC maps a precompiled header over its heap in pieces of 64 KB, three thousand of
// them for CUB, and after each program it maps empty memory over the whole heap. Every page of every piece then faults
// again, which takes a tenth of the time of compiles with precompiled headers
// (docs/internals/decisions/0005.md). A piece is therefore copied into the existing mapping, which is equivalent
// for a private mapping. Memory that NVRTC wants to empty is left unchanged, because nothing uses it before a piece is
// mapped there.
bool keep_pch_heap_whole(void* request, std::size_t size, int flags, int fd, off_t offset) {
  if ((flags & MAP_FIXED) == 0 || (flags & MAP_PRIVATE) == 0 || !pch_heap_whole || !is_in_pch_heap(request, size)) {
    return false;
  }
  if (fd >= 0) return copy_from(fd, offset, request, size);
  return size == pch_heap_size.load(std::memory_order_relaxed);
}

void* map_memory(void* request, std::size_t size, int protection, int flags, int fd, off_t offset) {
  const auto map = [&](void* address, int how) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the result of a system call
    return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, how, fd, offset));
  };
  if (request == nullptr && fd < 0 && size != 0 && size == pch_heap_size.load(std::memory_order_relaxed)) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address at which nothing is mapped yet
    void* const placed = map(reinterpret_cast<void*>(kPchHeap), flags | MAP_FIXED_NOREPLACE);
    // Kernels before 4.17 and some emulators treat the address as a hint. Memory at another address is used normally.
    if (placed != MAP_FAILED && reinterpret_cast<std::uintptr_t>(placed) != kPchHeap) return placed;
    if (placed != MAP_FAILED) {
      (void)madvise(placed, size, MADV_HUGEPAGE);
      pch_heap_placed = true;
      pch_heap_whole = true;
      return placed;
    }
  }
  if (keep_pch_heap_whole(request, size, flags, fd, offset)) return request;
  if ((flags & MAP_FIXED) != 0 && is_in_pch_heap(request, size)) pch_heap_whole = false;
  return map(request, flags);
}

}  // namespace

namespace kiln {

void reserve_pch_heap(std::size_t size) {
  pch_heap_size = size;
  pch_heap_placed = false;
  pch_heap_whole = false;
}
bool is_pch_heap_reserved() { return pch_heap_placed; }

}  // namespace kiln

#define KILN_EXPORTED extern "C" __attribute__((visibility("default"), used))

KILN_EXPORTED void* mmap(void* request, std::size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  return map_memory(request, size, protection, flags, fd, offset);
}
KILN_EXPORTED void* mmap64(void* request, std::size_t size, int protection, int flags, int fd,
                           off64_t offset) noexcept {
  return map_memory(request, size, protection, flags, fd, offset);
}
