// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/files/file_digest_cache.hpp"
#include "base/mutex.hpp"
#include "events/event_emitter.hpp"
#include "worker/pch_cache.hpp"
#include "worker/pch_check.hpp"
#include "worker/worker_protocol.hpp"

namespace kiln {

/// A manager that lets CUDA units with the same headers parse them once per host. For each compile it decides whether
/// to use a precompiled header, to create one, or neither; afterwards it stores or removes the file. It changes the
/// duration of a compile, not the result.
///
/// A precompiled header is used only if every file that it was created from has the same content: NVRTC would detect
/// neither an edited nor a shadowed header and would return outdated code. It is used only with an NVRTC library that
/// was checked once on this host to produce the same results with precompiled headers.
/// Thread-safe.
class PchManager {
 public:
  /// Returns the options of the cache, or nothing to disable precompiled headers. It is called once, at the first use.
  using FindPchCache = std::function<std::optional<PchCache::Options>()>;
  /// `worker_memory` is the memory limit of a worker in bytes: another limit makes kiln try again what failed.
  PchManager(FindPchCache pch_cache, FileDigestCache& digests, EventEmitter emitter, std::uint64_t worker_memory);

  /// Returns a digest of the headers with which a unit starts; nothing if there is nothing to share. Units with equal
  /// digests can share a precompiled header. Costs one scan of the source.
  std::optional<Digest> headers_of(const Recipe& recipe);
  /// Returns true if the headers of a unit may be stored. The recipe needs no digest of its compiler.
  bool may_have_stored(const Recipe& recipe) { return headers_of(recipe) && pch_cache_->usage().files > 0; }

  /// A pending compile of a unit with these headers. Several at the same time justify a precompiled header.
  class PendingUse {
   public:
    PendingUse(PchManager& owner, const Digest& headers);
    ~PendingUse();
    PendingUse(const PendingUse&) = delete;
    PendingUse& operator=(const PendingUse&) = delete;

   private:
    PchManager& owner_;
    const Digest headers_;
  };

  /// Marks that this process is creating a precompiled header, for the lifetime of the object.
  class InProgress {
   public:
    InProgress(PchManager& owner, const Digest& headers);
    ~InProgress();
    InProgress(const InProgress&) = delete;
    InProgress& operator=(const InProgress&) = delete;

   private:
    PchManager& owner_;
    const Digest headers_;
  };

  /// Marks that this thread is checking the precompiled headers of a library. No other thread does so during its
  /// lifetime.
  class Check {
   public:
    Check(PchManager& owner, const Digest& compiler, CompilerIdentity nvrtc, std::unique_ptr<PchCache::Writer> making);
    ~Check();
    Check(const Check&) = delete;
    Check& operator=(const Check&) = delete;

   private:
    friend class PchManager;
    PchManager& owner_;
    const Digest compiler_;
    const CompilerIdentity nvrtc_;
    const std::unique_ptr<PchCache::Writer> making_;
  };

  /// The handling of precompiled headers for one compile.
  struct PchPlan {
    std::unique_ptr<Check> check;  ///< if not null, call `passes_check` before using `order`
    PchRequest order;
    Digest headers{};
    std::unique_ptr<InProgress> underway;      ///< for Create; released after the file is published
    std::unique_ptr<PchCache::Writer> making;  ///< for Create
    std::vector<FileAccess> observations;      ///< for Use: the accesses recorded at creation, with current stamps
    bool headers_only = false;                 ///< for Create: only the headers were compiled
  };
  PchPlan plan(const Recipe& recipe, const Digest& headers, const RequestContext& context);
  /// Runs a plan's check in the worker that will execute its order (`check_pch`) and stores the result. Returns false
  /// if the order must not be executed: precompiled headers are disabled for this library (an event reported it once),
  /// or the check was interrupted. The worker must not be used afterwards in that case.
  bool passes_check(const PchPlan& plan, const Recipe& recipe, const AskWorker& ask, const RequestContext& context);

  /// Finishes a plan. Returns all file accesses of the compile: its own ones and, if it used a precompiled header,
  /// those recorded when the header was created.
  std::vector<FileAccess> finish(PchPlan& plan, const Recipe& recipe, const WorkerReply& reply,
                                 const RequestContext& context);
  /// Handles the crash of a worker with this plan: the precompiled header that it used is removed. Using and
  /// creating one count as failed.
  void invalidate(const PchPlan& plan, const Recipe& recipe, const RequestContext& context);

 private:
  /// `start` are the leading texts of the units that can share the headers.
  static Digest digest_of(const Recipe& recipe, const std::vector<std::string>& start);
  /// The state of a library with regard to precompiled headers.
  enum class Standing : std::uint8_t { Unknown, Unchecked, Checking, Good, Off };
  Standing standing_of(const Recipe& recipe, const RequestContext& context);
  /// Returns the state after a check that another thread has begun, if this recipe can wait for it.
  Standing wait_for_check(const Recipe& recipe, const RequestContext& context);
  bool is_being_created(const Digest& headers);
  std::optional<CompilerIdentity> nvrtc_of(const Recipe& recipe);
  std::unique_ptr<Check> begin_check(const Recipe& recipe, const RequestContext& context);
  Standing evaluate(const Recipe& recipe, const CompilerIdentity& nvrtc, const PchVerdict& verdict,
                    const RequestContext& context);
  PchPlan choose(const Recipe& recipe, const Digest& headers, const RequestContext& context);
  std::optional<PchPlan> use(const Recipe& recipe, const Digest& headers, const RequestContext& context);
  bool should_create(const Recipe& recipe, const Digest& headers, const RequestContext& context);
  bool wait_for_writer(const Digest& headers, const RequestContext& context);
  void keep(PchPlan& plan, const Recipe& recipe, const WorkerReply& reply, const RequestContext& context);
  /// When it can be tried again to create a precompiled header: Soon is known only to this process.
  enum class Retry : std::uint8_t { Soon, NextDay, NextMonth };
  /// Records that a precompiled header could not be created or stored.
  void mark_failed(const Digest& headers, const Recipe& recipe, const std::string& reason, Retry retry,
                   const RequestContext& context);
  /// Counts a failure. The one that reaches the maximum is stored for a day.
  void count_failure(const Digest& headers, const Recipe& recipe, const std::string& reason,
                     const RequestContext& context);
  bool has_failed_before(const Recipe& recipe, const Digest& headers, const RequestContext& context);
  Digest failure_key(const Digest& headers) const;
  void remember_log_check(const Digest& headers, std::uint64_t checksum);
  void drop(const Recipe& recipe, const Digest& headers, const std::string& reason, const RequestContext& context);
  void emit(Event::Kind kind, const Recipe& recipe, std::string message, const RequestContext& context) const;

  const FindPchCache find_pch_cache_;  // looks for the directory only when it is first needed
  std::once_flag found_;
  std::unique_ptr<PchCache> pch_cache_;  // null means disabled; constant after initialization
  FileDigestCache& digests_;
  const EventEmitter emitter_;
  const std::uint64_t worker_memory_;
  Mutex mutex_;
  Condition made_;
  struct HeaderStats {
    std::optional<std::chrono::nanoseconds> making;  // time since when this process creates the header (steady clock)
    unsigned interested = 0;                         // number of running compiles with these headers
    bool seen = false;                               // true if a unit with these headers was compiled before
    unsigned failed_attempts = 0;                    // number of failed attempts to create or use it
    std::chrono::nanoseconds failed_until{0};        // time until which they count (system clock)

    bool has_failed();
    bool add_failures(unsigned count, const PchVerdict& verdict);  // returns has_failed()
  };
  std::unordered_map<Digest, HeaderStats> stats_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<Digest, Standing> libraries_ KILN_GUARDED_BY(mutex_);  // by the digest of the compiler
  bool unavailable_ KILN_GUARDED_BY(mutex_) = false;
};

}  // namespace kiln
