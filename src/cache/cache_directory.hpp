// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files/files.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A cache directory on disk. It checks owners and permissions, reads and publishes files, and handles the errors of
/// network file systems. It does not interpret file contents. Any number of processes can use one directory.
/// Thread-safe.
///
/// The first read opens the directory and the first write creates it. The format version is part of every path, so two
/// versions of kiln never read each other's files.
class CacheDirectory {
 public:
  static constexpr const char* kVersion = "v1";
  /// File in the directory of each version. It marks the directory as a cache for backup programs and as kiln's for the
  /// garbage collector.
  static constexpr const char* kTag = "CACHEDIR.TAG";

  struct Options {
    std::string root;
    bool read_only = false;
    std::vector<uid_t> trusted_owners;  ///< in addition to this user and root
  };
  CacheDirectory(Options options, const Clock& clock);

  /// The open directories. The descriptors stay usable while the pointer is held, even if the cache is removed.
  struct OpenDirectory {
    Fd root;
    Fd version;
    bool writable = false;  ///< true if this user owns the directory and it is not configured as read-only
    /// Users, in addition to root and this user, whose files are read: the trusted owners and the owner of the
    /// directory.
    std::vector<uid_t> owners;
  };
  using OpenDirectoryPtr = std::shared_ptr<const OpenDirectory>;
  /// Returns null if the cache does not exist yet, and an error with the reason if it exists and must not be used.
  Result<OpenDirectoryPtr> open();
  /// Returns the directories and creates them if they are missing. Fails if the cache cannot be written.
  Result<OpenDirectoryPtr> open_for_write();

  /// Checks whether `open_for_write` would succeed. Creates nothing that stays: it creates and removes a directory in
  /// the one in which the next file or directory would be created.
  Status check_write();

  struct File {
    Bytes bytes;             ///< at most the requested number of bytes
    std::uint64_t size = 0;  ///< size of the whole file in bytes
    std::uint64_t inode = 0;
    bool is_trusted = true;  ///< false if another user owns the file or can write to it; nothing was read then
  };
  /// Returns the first `maximum` bytes of a file of this version, or nothing if it does not exist. Updates the time of
  /// last use, at most once an hour, unless the cache is not writable or is on a network file system.
  Result<std::optional<File>> read(const char* name, std::size_t maximum);

  /// Atomically creates or replaces a file of this version. Data is not synced: a checksum detects a file that a
  /// machine crash left incomplete. The first publish of a process also removes temporary files of dead writers.
  ///
  /// `grows` receives the new size once the bytes are written and before the rename. It then receives, as a negative
  /// number, the size of the replaced file, or the new size again if the rename failed. A process killed in between has
  /// counted too much, never too little.
  using SizeDeltaCallback = std::function<void(std::int64_t bytes)>;
  Status publish(const std::string& name, std::initializer_list<std::string_view> parts,
                 const SizeDeltaCallback& grows);

  /// Removes a corrupt file unless another process replaced it. Returns true if it removed the file.
  bool remove_corrupt(const char* name, std::uint64_t inode);

  /// Returns true if the name of a temporary file shows that its writer is dead.
  bool is_writer_dead(std::string_view temporary) const;

  const std::string& root() const { return options_.root; }
  const Clock& clock() const { return clock_; }

 private:
  void forget(const OpenDirectoryPtr& directory);
  Status make();
  void remove_stale_once(const OpenDirectory& directory);
  Status publish_once(const OpenDirectory& opened, const std::string& name,
                      std::initializer_list<std::string_view> parts, const std::function<void()>& written);
  std::string temporary_name();
  void note_use(const OpenDirectory& directory, int fd, std::int64_t modified_ns) const;

  const Options options_;
  const Clock& clock_;
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<pid_t> swept_by_{0};  // the process that removed stale files; a forked child does it again
  mutable Mutex mutex_;
  OpenDirectoryPtr directory_ KILN_GUARDED_BY(mutex_);
  std::string writer_ KILN_GUARDED_BY(mutex_);  // prefix of this process's temporary file names
};

/// The path `entries/ab/abcd…`, stored on the stack so that a hit allocates no memory for it.
class ShardedName {
 public:
  ShardedName(std::string_view kind, const Digest& digest);
  const char* c_str() const { return text_; }
  std::string str() const { return text_; }

 private:
  char text_[96];
};

}  // namespace kiln
