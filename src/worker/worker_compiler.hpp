// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/compiler.hpp"
#include "backends/cuda/bundled_headers.hpp"
#include "backends/failure_cache.hpp"
#include "base/files/file_digest_cache.hpp"
#include "base/mutex.hpp"
#include "events/event_emitter.hpp"
#include "worker/library_check.hpp"
#include "worker/pch_manager.hpp"
#include "worker/worker_pool.hpp"
#include "worker/worker_protocol.hpp"

namespace kiln {

/// A compiler that runs another compiler in kiln-worker processes. The processes can be killed, and they record every
/// file access of the compiler. The dependency set is therefore exact, and a compiler that crashes, hangs or uses all
/// memory does not affect the host process. If the worker program is missing, or a worker does not have the compiler,
/// units are compiled in this process and an event reports it. Thread-safe.
class WorkerCompiler final : public Compiler {
 public:
  struct Options {
    WorkerPool* pool = nullptr;                         ///< null means that everything is compiled in this process
    PchManager* headers = nullptr;                      ///< null means that headers are parsed each time
    LibraryCheck* checks = nullptr;                     ///< null means that unknown libraries do not compile
    std::chrono::milliseconds timeout{10 * 60 * 1000};  ///< timeout of one compile
    /// Compiles self-contained units in this process, unless it is a forked child. A compiler crash then ends this
    /// process.
    bool closed_in_process = false;
    SandboxSettings sandbox = {};       ///< settings of the workers' sandboxes
    BundledHeaders* bundled = nullptr;  ///< null means that NVRTC's bundled headers are not used
  };
  WorkerCompiler(std::unique_ptr<Compiler> inner, FileDigestCache& digests, Options options, EventEmitter emitter);

  std::string kind() const override { return inner_->kind(); }
  /// Returns the inner compiler's identity, with the roots of NVRTC's bundled headers.
  Result<CompilerIdentity> identity(const RequestContext& context) override;
  std::optional<CompilerIdentity> undigested_identity() override;
  std::optional<Digest> files_state() override { return inner_->files_state(); }
  /// Compiles in a worker on another thread, without precompiled headers. See EarlyJob.
  std::unique_ptr<EarlyCompile> start_early(const Recipe& undigested, const RequestContext& context) override;
  Status supports(const Target& target) override { return inner_->supports(target); }
  bool is_self_contained(const Recipe& recipe) const override { return inner_->is_self_contained(recipe); }
  /// Compiles in a worker. If a worker crashes, hangs or sends an invalid reply, the unit is tried once more in a new
  /// worker. After two such failures the unit is quarantined: the result is Code::CompileFailed with the cause, and the
  /// unit is not retried without an explicit request. A worker that another process killed does not count against the
  /// unit.
  ///
  /// A CUDA unit is compiled without the roots of the recipe's compiler first. If it fails because a header is missing,
  /// the headers that NVRTC bundles are installed, and it is compiled with those roots. If they cannot be installed,
  /// the result is Code::Unavailable or Code::Cancelled with the compiler's log.
  Result<CompileResult> compile(const Recipe& recipe, const RequestContext& context) override;
  bool should_retry(const Recipe& recipe) override;
  void interrupt() override;

 private:
  enum class FaultSource : std::uint8_t { None, Unit, Limit, External, Headers, Unseen };

  /// Checks a library that kiln does not know before its first compile. Code::CompileFailed of its run is a result of
  /// the check; what depends on the load or the settings of this host has other codes.
  Status check_library(const Recipe& recipe, const RequestContext& context);
  Result<CompileResult> compile_with_roots(const Recipe& recipe, const RequestContext& context);
  /// Compiles with the roots of bundled headers. Installs these again if they were removed after they were checked.
  Result<CompileResult> compile_with_bundled(const Recipe& recipe, const RequestContext& context);
  Status install_headers(const Recipe& recipe, const RequestContext& context);
  /// Returns true if the recipe has no roots of bundled headers, and another compile with them can follow.
  bool may_need_bundled(const Recipe& recipe) const;
  /// Returns true if the last compile of a unit with these headers failed because a header was missing. No precompiled
  /// header is created from them then.
  bool had_missing_header(const Digest& headers);
  void remember_missing_header(const Digest& headers, const Result<CompileResult>& compiled);
  /// Returns the environment of a worker: variables for finding libraries, for sanitizers, and those of the recipe.
  static std::vector<std::string> worker_environment(const Recipe& recipe);
  Result<CompileResult> compile_in_worker(const Recipe& recipe, const RequestContext& context);
  Result<CompileResult> compile_in_process(const Recipe& recipe, const std::string& reason, const char* next_step,
                                           const RequestContext& context);
  /// Tries to compile once. Returns nothing if the worker was lost; `fault` and `cause` give the reason.
  std::optional<Result<CompileResult>> try_compile(const Recipe& recipe, const std::optional<Digest>& headers,
                                                   FaultSource& fault, std::string& cause,
                                                   const RequestContext& context);
  /// Returns the result of the compile that was started early. Returns nothing if there is none for this recipe, if the
  /// compiler's files changed while it ran (`fault` is None for both), or if its worker was lost.
  std::optional<Result<CompileResult>> take_early(const Recipe& recipe, FaultSource& fault, std::string& cause,
                                                  const RequestContext& context);
  WorkerPool::WorkerRequest worker_request(const Recipe& recipe, const SandboxPlan& sandbox,
                                           const RequestContext& context) const;
  /// Sets `fault` and `cause` after an exchange that was not answered.
  void explain_loss(const Worker::Exchange& talk, FaultSource& fault, std::string& cause) const;
  /// Returns true if units of this compiler run in this process although there are workers.
  bool stays_in_process(const Recipe& recipe) const;
  /// Runs a job that is unrelated to the unit. Returns Code::Cancelled if the worker was killed externally and
  /// Code::Internal if it crashed.
  Result<WorkerReply> send_job(Worker& worker, const WorkerJob& job, const std::stop_token& stop) const;
  /// Returns nothing if the reply is unusable; `fault` and `cause` give the reason.
  std::optional<Result<CompileResult>> handle_reply(const Recipe& recipe, const Frame& answer,
                                                    PchManager::PchPlan& plan, FaultSource& fault, std::string& cause,
                                                    const RequestContext& context);
  CompileResult build_result(const Recipe& recipe, WorkerReply reply, PchManager::PchPlan& plan,
                             const RequestContext& context);
  void remember_rejection(const Recipe& recipe, const std::vector<FileAccess>& observations);
  Error quarantine(const Recipe& recipe, const std::string& cause, const RequestContext& context);
  void emit(Event::Kind kind, const Recipe& recipe, std::string message, const RequestContext& context) const;

  const std::unique_ptr<Compiler> inner_;
  FileDigestCache& digests_;
  const Options options_;
  const EventEmitter emitter_;
  FailureCache failures_;
  Mutex mutex_;
  std::set<Digest> missing_headers_ KILN_GUARDED_BY(mutex_);  // see `had_missing_header`
  std::atomic<bool> is_unseen_{false};  // the compiler opens files in a way that a worker cannot intercept
};

}  // namespace kiln
