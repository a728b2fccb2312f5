// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/files/files.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A file whose bytes are locks. A POSIX record lock on a byte excludes other processes; a table in memory excludes
/// other threads of this process. The file itself stays empty. Thread-safe.
///
/// There is one `LockFile` per file and process, and it is never destroyed: closing any descriptor of a file drops
/// every record lock that the process has on it. For this reason it is process-wide state, the only such state in kiln,
/// and no other code may open the file (docs/internals/decisions/0002.md).
class LockFile {
 public:
  /// Returns the lock file at `path` and creates it if missing; its directory must exist. A child of fork never gets
  /// the object of its parent: it owns none of the parent's locks, and the parent's mutexes may be locked permanently
  /// in the child.
  static Result<LockFile*> open(const std::string& path);

  /// Returns the byte of a key: 62 bits of it. Two keys with the same byte only block each other.
  static off_t lock_offset(const Digest& key);

  struct LockAttempt {
    enum class Result : unsigned char { Acquired, HeldByThisProcess, HeldByOtherProcess, Failed };
    Result result = Result::Failed;
    std::uint64_t holder =
        0;           ///< HeldByThisProcess: the id of the lock; HeldByOtherProcess: the process id, 0 if unknown
    int error = 0;   ///< Failed: the errno
    off_t byte = 0;  ///< from `query_holder`, HeldByOtherProcess: first byte of the conflicting lock
    off_t end = 0;   ///< the byte after the conflicting lock
  };
  /// Locks the byte, or returns its holder. Does not block.
  LockAttempt try_lock(off_t byte);
  /// Releases a byte that `try_lock` locked for this process.
  void release(off_t byte);

  /// A scoped lock on a byte. The copy in a child of fork releases nothing.
  class ScopedLock {
   public:
    ScopedLock() = default;  ///< holds no lock
    ScopedLock(LockFile& file, off_t byte);
    ScopedLock(ScopedLock&& other) noexcept;
    ScopedLock& operator=(ScopedLock other) noexcept;
    ~ScopedLock();
    explicit operator bool() const { return file_ != nullptr; }

   private:
    LockFile* file_ = nullptr;
    off_t byte_ = 0;
    pid_t process_ = 0;
  };
  /// Locks the byte of a key for the lifetime of the result. The result is empty if the byte is locked. Does not block.
  ScopedLock try_lock_scoped(const Digest& key);

  /// Waits until the lock that HeldByThisProcess named is released, at most `time`. Returns whether it was released.
  bool wait_for_local_holder(off_t byte, std::uint64_t holder, std::chrono::nanoseconds time);
  /// Returns which other process holds a lock in `length` bytes from `byte`: HeldByOtherProcess, Failed, or Taken if
  /// none does. Locks nothing itself, so that any number of callers see a release and none delays the next holder.
  LockAttempt query_holder(off_t byte, off_t length = 1) const;
  /// Returns the lowest of these bytes that this process holds, or nothing.
  std::optional<off_t> held_here(off_t byte, off_t length = 1) const;

  LockFile(Fd fd, const struct stat& status);
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  bool descriptor_is_ours() const;
  void replace_descriptor(Fd fd);
  int descriptor() const;

  const dev_t device_;
  const ino_t inode_;
  mutable Mutex mutex_;
  Condition released_;
  int fd_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<off_t, std::uint64_t> held_ KILN_GUARDED_BY(mutex_);  // byte → id of the lock
  std::uint64_t lock_count_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln
