// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "worker/worker_protocol.hpp"

namespace kiln {

/// The files that the host opens for a worker whose sandbox does not allow it to open them: those below the include
/// roots and the working directory of one job, and the job's precompiled header. A worker's requests are not trusted:
/// each path is resolved and checked here. Not thread-safe.
class WorkerFiles {
 public:
  explicit WorkerFiles(const WorkerJob& job);

  /// Opens a file, for reading unless the job writes it. Returns the file, or the errno with which `open` must fail in
  /// the worker.
  FileReply open(const FileRequest& request);

  /// Returns the inputs that the compiler requested and that only the sandbox denied. Its output without them does not
  /// correspond to the unit.
  const std::vector<std::string>& rejected() const { return rejected_; }

 private:
  FileReply open_input(const std::string& path, FileRequest::Purpose purpose);
  bool may_read(const std::string& path, const std::string& real) const;

  const std::string working_directory_;
  const PchRequest pch_;
  std::vector<std::string> roots_;       // absolute, as the job gives them
  std::vector<std::string> real_roots_;  // with links resolved
  std::vector<std::string> rejected_;
};

}  // namespace kiln
