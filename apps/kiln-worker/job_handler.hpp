// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend_factory.hpp"
#include "backends/cccl/cccl_compiler.hpp"
#include "backends/cuda/nvrtc_compiler.hpp"
#include "base/files/file_digest_cache.hpp"
#include "pch_job.hpp"
#include "worker/worker_protocol.hpp"

namespace kiln {

/// The compilers of a worker. Each is opened at the first job that needs it and kept open. Not thread-safe.
class JobHandler {
 public:
  /// `memory_limit` is the memory limit of the process in bytes, for error messages.
  explicit JobHandler(std::uint64_t memory_limit) : memory_limit_(memory_limit) {}

  /// Runs a job and returns the frame with its result.
  Frame handle(const Frame& request);

 private:
  struct Nvrtc {
    std::unique_ptr<NvrtcCompiler> compiler;
    PchHeap heap;
    std::string unobservable_because;  ///< empty if all of its file accesses are recorded
    Digest access_check;               ///< `loaded_files_digest` if they are, otherwise zeros
  };
  Nvrtc& nvrtc(const std::string& path, const WorkerJob& job);
  /// Compiles a job and handles precompiled headers as ordered.
  Frame compile_watched(const WorkerJob& job, Nvrtc& by, const PchJob::Compile& make);
  Frame compile_cuda(const WorkerJob& job);
  Frame compile_cccl(const WorkerJob& job);
  void confine(SandboxPlan plan);
  Frame compile_by(const BackendFactory& backend, const Recipe& recipe);
  Compiler* other_compiler(const Recipe& recipe);
  // Compiles with a compiler that reports its inputs by itself.
  Frame compile_with(Compiler& compiler, const Recipe& recipe) const;
  WorkerFailure failure_of(const Error& error, std::vector<FileAccess> observations) const;

  const std::uint64_t memory_limit_;
  bool is_confined_ = false;
  bool must_see_opens_ = false;  // true if the files of include roots are requested from the host one by one
  FileDigestCache digests_{std::string()};
  std::map<std::string, Nvrtc> nvrtcs_;                         // by path
  std::map<std::string, std::unique_ptr<CcclCompiler>> cccls_;  // by path
  std::map<std::string, std::unique_ptr<Compiler>> compilers_;  // of other kinds, by path
};

}  // namespace kiln
