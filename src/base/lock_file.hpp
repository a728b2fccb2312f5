#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/files.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A file whose bytes are locks: a POSIX record lock on one of them keeps other processes away, a table in memory keeps
/// the other threads of this process away. The file itself stays empty. Any thread.
///
/// There is one LockFile per file and process, and it is kept for good: closing any descriptor of a file drops every
/// record lock that the process has on it. That is why this is process-wide state where kiln has none elsewhere, and
/// why nothing else may open the file. docs/decisions/0002-claims-by-record-locks.md weighs it.
class LockFile {
 public:
  /// The lock file of this name, made where it is missing; its folder must be there. Never the one that this process
  /// had before a fork: a child owns none of its parent's locks, and the parent's mutexes may be locked for ever in it.
  static Result<LockFile*> open(const std::string& path);

  /// The byte that stands for a key: 62 bits of it. Two keys that share them keep each other waiting, no more.
  static off_t byte_of(const Digest& key);

  struct Attempt {
    enum class Result : unsigned char { Taken, HeldHere, HeldElsewhere, Failed };
    Result result = Result::Failed;
    std::uint64_t holder = 0;  ///< HeldHere: which holding it is; HeldElsewhere: the process, zero where unknown
    int error = 0;             ///< Failed: the errno
  };
  /// Takes the byte, or says who has it. Does not wait.
  Attempt take(off_t byte);
  /// Lets go of a byte that `take` gave to this process.
  void release(off_t byte);

  /// A byte that is let go when this is destroyed. The copy that a child of fork has lets nothing go.
  class Hold {
   public:
    Hold() = default;  ///< of nothing
    Hold(LockFile& file, off_t byte);
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold other) noexcept;
    ~Hold();
    explicit operator bool() const { return file_ != nullptr; }

   private:
    LockFile* file_ = nullptr;
    off_t byte_ = 0;
    pid_t process_ = 0;
  };
  /// Takes the byte of a key for as long as that lives; of nothing where somebody has it. Does not wait.
  Hold hold(const Digest& key);

  /// Returns at once when the holding that HeldHere named is over, at the latest after `time`; whether it is over.
  bool wait_here(off_t byte, std::uint64_t holder, std::chrono::nanoseconds time);
  /// Who has it, or one of the bytes from it on, among other processes now: HeldElsewhere, Failed, or Taken for nobody.
  /// Takes nothing itself, so that however many look at once, all see a lock go and none is in the way of the one who
  /// takes it next.
  Attempt look(off_t byte, off_t length = 1) const;

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
  std::unordered_map<off_t, std::uint64_t> held_ KILN_GUARDED_BY(mutex_);  // byte → which holding it is
  std::uint64_t holdings_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln
