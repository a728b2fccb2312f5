#pragma once

#include <cstddef>

#include "compile/file_recorder.hpp"

namespace kiln {

/// While it lives, every file that a library in this process opens, or asks for, goes into the recorder. The process
/// has one compile at a time, so there is one of these at a time.
class FileWatch {
 public:
  explicit FileWatch(FileRecorder& recorder);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;
};

/// NVRTC's precompiled headers are an image of its memory, good only where that memory lies at the address at which it
/// lay when they were made. From here on, whoever asks for memory of exactly this size gets it at the one address that
/// all workers have agreed on, if that is free.
void place_pch_heap(std::size_t size);
/// Whether somebody has.
bool is_pch_heap_placed();

}  // namespace kiln
