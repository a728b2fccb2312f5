// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace kiln::test {

/// A T that a process shares with its forked children. Its fields are atomics.
template <class T>
class SharedMemory {
 public:
  SharedMemory() {
    void* place = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) abort();
    value_ = new (place) T();
  }
  ~SharedMemory() { munmap(static_cast<void*>(value_), sizeof(T)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  T* operator->() { return value_; }
  T& operator*() { return *value_; }

 private:
  T* value_;
};

}  // namespace kiln::test
