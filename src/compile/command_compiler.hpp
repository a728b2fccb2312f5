#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/file_digests.hpp"
#include "base/mutex.hpp"
#include "compile/closure_builder.hpp"
#include "compile/command_folder.hpp"
#include "compile/command_runner.hpp"
#include "compile/command_tools.hpp"
#include "compile/compiler.hpp"
#include "compile/refusals.hpp"

namespace kiln {

/// Units of `Unit::command`, by the program that their command lines name: nvcc, or another that writes a dependency
/// file. One compiler is for one program. Needs no device. Any thread. docs/command-compiler.md says what it vouches
/// for.
///
/// Each compile is a process group in a fresh private folder: it can be ended, and leaves nothing behind.
class CommandCompiler final : public Compiler {
 public:
  struct Options {
    std::chrono::milliseconds limit{10 * 60 * 1000};  ///< how long one compile may take
    std::string temporary;                            ///< where its folders are made; empty: TMPDIR, else /tmp
  };
  /// `program` is a name to be found by PATH, or an absolute path: the first word of the units' command lines.
  CommandCompiler(std::string program, FileDigests& digests);
  CommandCompiler(std::string program, FileDigests& digests, Options options);

  std::string kind() const override { return "command"; }
  Result<CompilerIdentity> identity() override { return tools_.identity(); }
  Status supports(const Target& target) override;
  Result<Compiled> compile(const Recipe& recipe) override;
  bool worth_another_try(const Recipe& recipe) override { return refusals_.worth_another_try(recipe); }
  void interrupt() override { runner_.interrupt(); }

 private:
  struct Run;
  Status check(const Recipe& recipe);
  Result<Run> run(const Recipe& recipe, const CommandFolder& folder);
  Result<BuiltClosure> closure_of(const Recipe& recipe, const Run& run, const CommandFolder& folder,
                                  std::string_view bytes);
  void add_closure(const Recipe& recipe, const Run& run, const CommandFolder& folder, Compiled& compiled);
  void remember_failure(const Recipe& recipe, const Run& run, const CommandFolder& folder);
  std::string hidden_inputs(const Recipe& recipe);
  void sweep_once();

  const std::string program_;
  FileDigests& digests_;
  const Options options_;
  CommandRunner runner_;
  CommandTools tools_;
  Mutex mutex_;
  bool swept_ KILN_GUARDED_BY(mutex_) = false;
  Refusals refusals_;
};

}  // namespace kiln
