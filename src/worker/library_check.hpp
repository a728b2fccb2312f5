// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backends/compiler.hpp"
#include "base/mutex.hpp"
#include "events/event_emitter.hpp"
#include "worker/pch_cache.hpp"

namespace kiln {

/// Returns the key of the check result of a library: `check` is the unit that checks it. The key contains kiln's
/// version: another version repeats the check.
Digest library_check_key(const CompilerIdentity& compiler, const Unit& check);
/// Returns the key of the result of a worker's check that it records the file accesses of this compiler.
Digest access_check_key(const CompilerIdentity& compiler);

/// The checks of compiler libraries that kiln does not know. A library that fails the check of a unit does not compile
/// the units that need it. The result is remembered in this process and on this host; a rejection on disk expires after
/// one day. Processes that need the same check at the same time each run it. Thread-safe.
///
/// It also remembers which workers passed the check of their file accesses (docs/internals/worker-protocol.md). Only a
/// passed check is remembered.
///
/// A result is a PchVerdict in a PchCache, because it needs the same as that of the check of a precompiled header: a
/// small file that is valid on one host only, is written by one process at a time, and expires if it is a rejection
/// (docs/internals/formats/pch.md).
class LibraryCheck {
 public:
  /// `directory` returns the directory of the results, empty if they are not stored. It is called once, at the first
  /// check.
  LibraryCheck(std::function<std::string()> directory, EventEmitter emitter)
      : find_directory_(std::move(directory)), emitter_(std::move(emitter)) {}

  /// Compiles the check of a recipe's library; Code::CompileFailed means that the library failed it.
  using Run = std::function<Result<CompileResult>()>;
  /// Returns an error if the library must not compile this recipe: Code::Unavailable if it failed the check, the error
  /// of `run` if the check was interrupted. Calls `run` if there is no result yet; other threads wait for it.
  Status pass(const Recipe& recipe, const Unit& check, const Run& run, const RequestContext& context);

  /// Returns the files of the worker that last passed the check of its file accesses with this compiler; zeros if none
  /// did.
  Digest access_check(const CompilerIdentity& compiler);
  /// Remembers `worker`, the files of a worker that passed. If it cannot be stored, the next process checks again.
  void remember_access_check(const CompilerIdentity& compiler, const Digest& worker);

 private:
  /// Marks a check of this thread as ended, also without a result.
  class Unfinished {
   public:
    Unfinished(LibraryCheck& owner, const Digest& key) : owner_(owner), key_(key) {}
    ~Unfinished();
    Unfinished(const Unfinished&) = delete;
    Unfinished& operator=(const Unfinished&) = delete;

   private:
    LibraryCheck& owner_;
    const Digest key_;
  };
  std::optional<PchVerdict> known(const Digest& key, const RequestContext& context) KILN_REQUIRES(mutex_);
  PchCache* cache();

  const std::function<std::string()> find_directory_;  // looks for the directory only when it is first needed
  const EventEmitter emitter_;
  std::once_flag found_;
  std::unique_ptr<PchCache> cache_;  // null if results are not stored; constant after `found_`
  Mutex mutex_;
  Condition finished_;
  std::map<Digest, std::optional<PchVerdict>> results_ KILN_GUARDED_BY(mutex_);  // nothing while a check runs
  std::map<Digest, Digest> access_checks_ KILN_GUARDED_BY(mutex_);
};

}  // namespace kiln
