#pragma once

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

}  // namespace kiln
