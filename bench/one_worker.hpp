#pragma once

#include <memory>
#include <string>

#include "compile/nvrtc_compiler.hpp"
#include "compile/worker_compiler.hpp"

namespace kiln::bench {

/// NVRTC in one worker that lives on, with nothing stored and no header precompiled: the least that a compile costs.
struct OneWorker {
  explicit OneWorker(const std::string& slots_folder) : pool({.most = 1, .slots_folder = slots_folder}) {}

  FileDigests digests{""};
  WorkerPool pool;
  WorkerCompiler compiler{std::make_unique<NvrtcCompiler>("", digests), digests, {.pool = &pool}, Observer()};
};

}  // namespace kiln::bench
