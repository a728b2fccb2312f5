#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file_digests.hpp"
#include "compile/cccl_compiler.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "compile/worker_protocol.hpp"

namespace kiln {

/// The compilers of a worker: opened at the first job that needs them, and kept. One job at a time.
class Workshop {
 public:
  /// `memory_limit` is what the process may have, for what it says when that was not enough.
  explicit Workshop(std::uint64_t memory_limit) : memory_limit_(memory_limit) {}

  /// What came of a job, as the frame that says so.
  Frame answer(const Frame& request);

 private:
  struct Nvrtc {
    std::unique_ptr<NvrtcCompiler> compiler;
    bool observable = false;  ///< whether all that it asks the file system is seen
  };
  Nvrtc& nvrtc(const std::string& path, const Recipe& recipe);
  /// What makes an artifact of a job and does with precompiled headers what it is told.
  using Compile = std::function<Result<Compiled>(const PchOrder& order, PchReport& report)>;
  Frame compile_watched(const WorkerJob& job, bool observable, const Compile& make);
  Frame compile_cuda(const WorkerJob& job);
  Frame compile_cccl(const WorkerJob& job);
  Compiler* other(const Recipe& recipe);
  // By a compiler that knows by itself what it reads.
  Frame compile_by(Compiler& compiler, const Recipe& recipe) const;
  WorkerFailure failure_of(const Error& error, std::vector<Observation> observations) const;

  const std::uint64_t memory_limit_;
  FileDigests digests_{std::string()};
  std::map<std::string, Nvrtc> nvrtcs_;                         // by path
  std::map<std::string, std::unique_ptr<CcclCompiler>> cccls_;  // likewise
  std::map<std::string, std::unique_ptr<Compiler>> compilers_;  // of other kinds, by path
};

}  // namespace kiln
