#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file_digests.hpp"
#include "base/mutex.hpp"
#include "base/process.hpp"
#include "compile/compiler.hpp"
#include "compile/nvrtc_compiler.hpp"
#include "compile/worker_protocol.hpp"
#include "observe/observer.hpp"

namespace kiln {

/// Runs NVRTC in a kiln-worker process, which sees every question that the compiler asks the file system: the closure
/// is exact, and a compiler that crashes takes no one with it. Closed units are compiled in this process, since nothing
/// is to be seen, unless it was forked off. Where the worker program is missing everything is, and an event says so.
/// Any thread.
class WorkerCompiler final : public Compiler {
 public:
  struct Options {
    std::string worker;                               ///< its path, empty to search
    std::chrono::milliseconds limit{10 * 60 * 1000};  ///< how long one compile may take
  };
  WorkerCompiler(std::unique_ptr<NvrtcCompiler> inner, FileDigests& digests, Options options, Observer observer);

  std::string kind() const override { return inner_->kind(); }
  Result<CompilerIdentity> identity() override { return inner_->identity(); }
  Status supports(const Target& target) override { return inner_->supports(target); }
  bool closed(const Recipe& recipe) const override { return inner_->closed(recipe); }
  Result<Compiled> compile(const Recipe& recipe) override;
  bool worth_another_try(const Recipe& recipe) override;
  void interrupt() override;

 private:
  Result<Compiled> compile_in(const std::string& worker, const Recipe& recipe);
  Result<WorkerReply> converse(int channel, Process& process, const Recipe& recipe);
  void remember_failure(const Recipe& recipe, const std::vector<Observation>& observations);

  const std::unique_ptr<NvrtcCompiler> inner_;
  FileDigests& digests_;
  const Options options_;
  const Observer observer_;
  Mutex mutex_;
  bool interrupted_ KILN_GUARDED_BY(mutex_) = false;
  std::vector<int> channels_ KILN_GUARDED_BY(mutex_);             // to the workers that run
  std::map<RequestKey, Closure> failed_ KILN_GUARDED_BY(mutex_);  // what compiles that were refused had read
};

/// Where kiln-worker is: the given path, else beside the program or library that kiln is in, else in its libexec
/// folder. Empty where it is nowhere.
std::string find_worker(const std::string& configured);

}  // namespace kiln
