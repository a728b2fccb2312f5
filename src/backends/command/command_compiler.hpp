// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backends/command/command_runner.hpp"
#include "backends/command/command_toolchain.hpp"
#include "backends/command/command_work_dir.hpp"
#include "backends/compiler.hpp"
#include "backends/dependency_builder.hpp"
#include "backends/failure_cache.hpp"
#include "base/files/file_digest_cache.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A compiler of `Unit::command` units. It runs the program that their command lines name: nvcc, or another program
/// that writes a dependency file. One instance serves one program. Needs no device. docs/how-to/link-and-nvcc.md lists
/// its guarantees.
///
/// Each compile is a process group in a new private directory. It can be terminated and leaves no files.
/// Thread-safe.
class CommandCompiler final : public Compiler {
 public:
  struct Options {
    std::chrono::milliseconds timeout{10 * 60 * 1000};  ///< timeout of one compile
    std::string temporary;                              ///< parent of its working directories; empty means TMPDIR, or
                                                        ///< /tmp
  };
  /// `program` is a name on the PATH or an absolute path: the first word of the units' command lines.
  CommandCompiler(std::string program, FileDigestCache& digests);
  CommandCompiler(std::string program, FileDigestCache& digests, Options options);

  std::string kind() const override { return "command"; }
  Result<CompilerIdentity> identity(const RequestContext& context) override { return tools_.identity(context); }
  Status supports(const Target& target) override;
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override;
  bool should_retry(const Recipe& recipe) override { return failures_.worth_another_try(recipe); }
  void interrupt() override { runner_.interrupt(); }

 private:
  struct Run;
  Status check(const Recipe& recipe);
  Result<Run> run(const Recipe& recipe, const CommandWorkDir& directory, const std::stop_token& stop);
  Result<DependencyResult> dependency_set_of(const Recipe& recipe, const Run& run, const CommandWorkDir& directory,
                                             std::string_view bytes);
  void add_dependency_set(const Recipe& recipe, const Run& run, const CommandWorkDir& directory,
                          CompileResult& compiled);
  void remember_failure(const Recipe& recipe, const Run& run, const CommandWorkDir& directory);
  std::string untracked_inputs(const Recipe& recipe);
  void sweep_once();

  const std::string program_;
  FileDigestCache& digests_;
  const Options options_;
  CommandRunner runner_;
  CommandToolchain tools_;
  Mutex mutex_;
  bool swept_ KILN_GUARDED_BY(mutex_) = false;
  FailureCache failures_;
};

}  // namespace kiln
