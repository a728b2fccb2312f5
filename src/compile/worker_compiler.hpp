#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/file_digests.hpp"
#include "compile/compiler.hpp"
#include "compile/precompiled_headers.hpp"
#include "compile/refusals.hpp"
#include "compile/worker_pool.hpp"
#include "compile/worker_protocol.hpp"
#include "observe/observer.hpp"

namespace kiln {

/// Runs another compiler in kiln-worker processes, which can be killed and which see every question that the compiler
/// asks the file system: the closure is exact, and a compiler that crashes, hangs or takes all memory takes no one with
/// it. Closed units are compiled in this process, since nothing is to be seen, unless it was forked off. Where the
/// worker program is missing everything is, and an event says so. Any thread.
class WorkerCompiler final : public Compiler {
 public:
  struct Options {
    WorkerPool* pool = nullptr;                       ///< null: everything is compiled in this process
    PrecompiledHeaders* headers = nullptr;            ///< null: headers are parsed each time
    std::chrono::milliseconds limit{10 * 60 * 1000};  ///< how long one compile may take
    bool everything = false;                          ///< closed units too go to a worker
  };
  WorkerCompiler(std::unique_ptr<Compiler> inner, FileDigests& digests, Options options, Observer observer);

  std::string kind() const override { return inner_->kind(); }
  Result<CompilerIdentity> identity() override { return inner_->identity(); }
  Status supports(const Target& target) override { return inner_->supports(target); }
  bool closed(const Recipe& recipe) const override { return inner_->closed(recipe); }
  /// A worker that dies, hangs or speaks nonsense costs one more try, in a fresh one. A unit that costs two is set
  /// aside: Code::CompileFailed with what happened, and nobody tries it again unasked. A worker that somebody else
  /// killed is not the unit's fault.
  Result<Compiled> compile(const Recipe& recipe) override;
  bool worth_another_try(const Recipe& recipe) override;
  void interrupt() override;

 private:
  enum class Fault : std::uint8_t { Own, Foreign };

  Result<Compiled> compile_in_worker(const Recipe& recipe);
  Result<Compiled> compile_here(const Recipe& recipe, const std::string& why);
  /// One try. Nothing where the worker was lost; `fault` and `cause` say how.
  std::optional<Result<Compiled>> try_once(const Recipe& recipe, const std::optional<Digest>& headers, Fault& fault,
                                           std::string& cause);
  /// Nothing where the answer is as good as none; `cause` says why.
  std::optional<Result<Compiled>> conclude(const Recipe& recipe, const Frame& answer, PrecompiledHeaders::Plan& plan,
                                           std::string& cause);
  Compiled complete(const Recipe& recipe, WorkerReply reply, PrecompiledHeaders::Plan& plan);
  void remember_refusal(const Recipe& recipe, const std::vector<Observation>& observations);
  Error set_aside(const Recipe& recipe, const std::string& cause);
  void tell(Event::Kind kind, const Recipe& recipe, std::string message) const;

  const std::unique_ptr<Compiler> inner_;
  FileDigests& digests_;
  const Options options_;
  const Observer observer_;
  Refusals refusals_;
};

}  // namespace kiln
