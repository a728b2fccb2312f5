// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "backends/cuda/nvrtc_compiler.hpp"
#include "worker/worker_compiler.hpp"

namespace kiln::bench {

/// NVRTC in one persistent worker, without a store and without precompiled headers: the minimum cost of a compile.
struct OneWorker {
  explicit OneWorker(const std::string& slots_directory)
      : pool({.max_workers = 1, .slots_directory = slots_directory}) {}

  FileDigestCache digests{""};
  WorkerPool pool;
  WorkerCompiler compiler{std::make_unique<NvrtcCompiler>("", digests), digests, {.pool = &pool}, EventEmitter()};
};

}  // namespace kiln::bench
