// SPDX-License-Identifier: Apache-2.0
// Preloaded into a worker, it occupies the address at which all workers place NVRTC's heap for precompiled headers
// (apps/kiln-worker/pch_heap.cpp), like a library that maps memory there.
#include <sys/mman.h>

#include <cstdint>

namespace {

constexpr std::uintptr_t kPchHeap = 0x2000'0000'0000;  // same value as in pch_heap.cpp

__attribute__((constructor)) void take_the_address() {
  (void)mmap(reinterpret_cast<void*>(kPchHeap), 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
             0);
}

}  // namespace
