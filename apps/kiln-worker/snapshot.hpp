// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <string>

#include "backends/file_access.hpp"
#include "base/files/files.hpp"

namespace kiln {

/// An immutable in-memory copy of a file, with the digest and the text facts of exactly these bytes.
struct Snapshot {
  Fd file;  ///< positioned at its start; empty if `content.problem` gives a reason why there is no copy
  FileContent content;
};

/// Copies an open file regardless of its file offset. Files without stable content (devices, pipes, files that the
/// kernel generates on read) and files of more than 1 GB are not copied.
Snapshot take_snapshot(int fd, const struct stat& status, const std::string& path, const TextScanner& scanner);

}  // namespace kiln
