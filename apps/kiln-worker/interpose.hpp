// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "backends/file_access.hpp"

namespace kiln {

/// Records every file that a library in this process opens or checks, for the lifetime of the object. A file that is
/// opened for reading is replaced by an in-memory copy whose digest is recorded. A process has one compile at a time,
/// and therefore one of these objects at a time. Not thread-safe.
class ScopedFileTracing {
 public:
  ScopedFileTracing(FileAccessRecorder& recorder, TextScanner scanner);
  ~ScopedFileTracing();
  ScopedFileTracing(const ScopedFileTracing&) = delete;
  ScopedFileTracing& operator=(const ScopedFileTracing&) = delete;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

/// Reserves the address of NVRTC's memory for precompiled headers. A precompiled header is an image of that memory and
/// valid only at the address at which it was created. A later mapping of exactly this size is placed at an address that
/// is the same in all workers, if that is free. NVRTC frees its memory before it allocates it with another size.
void reserve_pch_heap(std::size_t size);
/// Returns true if such a mapping was placed.
bool is_pch_heap_reserved();

}  // namespace kiln
