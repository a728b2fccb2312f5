#pragma once

#include <memory>

#include "base/file_digests.hpp"
#include "compile/worker_compiler.hpp"

namespace kiln::test {

/// The fixture of a compiler, for CompilerConformance, with that compiler in worker processes.
template <class Fixture>
struct InWorker : Fixture {
  std::unique_ptr<Compiler> compiler() {
    WorkerCompiler::Options options;
    options.pool = &pool;
    options.everything = true;
    return std::make_unique<WorkerCompiler>(Fixture::compiler(), digests, options, Observer());
  }

  FileDigests digests{std::string()};
  WorkerPool pool{{}};
};

}  // namespace kiln::test
