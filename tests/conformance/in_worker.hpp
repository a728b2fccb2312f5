// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/files/file_digest_cache.hpp"
#include "worker/worker_compiler.hpp"

namespace kiln::test {

/// A compiler fixture for `CompilerConformance` that runs the compiler in worker processes.
template <class Fixture>
struct InWorker : Fixture {
  std::unique_ptr<Compiler> compiler() {
    WorkerCompiler::Options options;
    options.pool = &pool;
    return std::make_unique<WorkerCompiler>(Fixture::compiler(), digests, options, EventEmitter());
  }

  FileDigestCache digests{std::string()};
  WorkerPool pool{{}};
};

}  // namespace kiln::test
