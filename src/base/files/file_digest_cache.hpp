// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "base/clock.hpp"
#include "base/files/digest_table.hpp"
#include "base/files/files.hpp"
#include "base/files/mounts.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A cache of content digests of files, keyed by (device, inode, size, mtime, ctime), in memory and optionally in a
/// file that processes share. If the stamp does not identify a file (images, overlays, FUSE), the mount is part of the
/// key. A digest is cached only if every later change must show in the stamp. For files with times of this host's
/// clock, the times were more than two seconds old at the read. For other clocks, the file had this stamp two seconds
/// before the read. Thread-safe.
///
/// Cached digests are trusted: the cache file must be in a directory that only this user or root can write to. They are
/// valid on this host only. If the directory is on a network file system, or is not writable, new digests go to
/// `host_local_directory()` instead. Lookups check both files.
class FileDigestCache {
 public:
  struct Options {
    /// Reads the file on each lookup and caches nothing across processes. A digest that was read since the time of the
    /// request, and within the last second, is reused.
    bool always = false;
    Mounts::Ids mount_ids = Mounts::Ids::Unique;  ///< other values are for tests
  };

  /// `cache_file` is a path, or empty for none. The constructor opens nothing; the first lookup does.
  explicit FileDigestCache(std::string cache_file, const Clock& clock = system_clock());
  FileDigestCache(std::string cache_file, Options options, const Clock& clock = system_clock());
  ~FileDigestCache();
  FileDigestCache(const FileDigestCache&) = delete;
  FileDigestCache& operator=(const FileDigestCache&) = delete;

  struct FileDigest {
    FileStamp stamp;
    Digest digest;
  };
  /// Returns the current content digest of a regular file. Returns nothing if the file is missing or unreadable, larger
  /// than a gigabyte, or grows during the read. Other file types are not opened. One thread at a time reads a file;
  /// other threads that request it wait for the result. For a large file this holds across all processes of this host.
  /// One object waits at most ten seconds in total for other processes, and never for a stopped process.
  /// `requested_at` is the time of the request that needs the digest (steady clock); nothing means now.
  std::optional<FileDigest> lookup(const std::string& path,
                                   std::optional<std::chrono::nanoseconds> requested_at = std::nullopt);

  /// Returns the state of a regular file if an equal state later proves that its content did not change in between: its
  /// times are those of this host's clock and two seconds old. Returns nothing otherwise, and if all files are read.
  std::optional<FileState> stable_state(const std::string& path);
  /// Returns true if the digest of the file in this state is cached, so that `lookup` does not read the file.
  bool is_cached(const std::string& path, const FileState& state);

  /// Writes new digests to the cache file, if there are any. If they are lost, files are digested again later.
  Status save();

  /// Reopens the cache file to use digests that other processes saved since.
  void reload();

  /// Returns the number of files that were read and digested, for tests and statistics.
  std::size_t computed_count() const;

 private:
  class InFlightDigest;
  struct Known {
    FileState state;
    Digest digest{};
    std::chrono::nanoseconds first_seen{0};  // nonzero: the digest is not trusted yet
    std::chrono::nanoseconds read_at{0};     // time before the read (steady clock)
  };
  struct DigestResult {
    FileState state;
    Digest digest;
    std::chrono::nanoseconds began;  // start of the read (steady clock)
    bool changed = false;            // state changed during the read
    bool young = false;              // file times were recent at the start of the read
  };

  std::optional<FileDigest> look_always(const std::string& path, std::optional<std::chrono::nanoseconds> requested_at);
  /// `remembered` returns the cached digest of a file in this state. `first_seen` returns the time since which the file
  /// has been known to be in this state; 0 if unknown.
  std::optional<Digest> remembered(const std::string& path, const FileState& state) KILN_REQUIRES(mutex_);
  std::chrono::nanoseconds first_seen(const std::string& path, const FileState& state) KILN_REQUIRES(mutex_);
  std::optional<DigestResult> read(const std::string& path);
  std::optional<FileDigest> computed_by_other_process(const std::string& path, const FileState& state);
  void store(const std::string& path, const DigestResult& reading);
  /// Returns the slot of a file in this state from the cache file (table 0) or the host-local file (table 1), or null.
  const DigestSlot* slot(std::size_t table, std::uint64_t path_hash, const FileState& state) KILN_REQUIRES(mutex_);

  const std::string cache_file_;
  const Options options_;
  const Clock& clock_;
  Mounts mounts_;
  mutable Mutex mutex_;
  // The cache file and the host-local file, each opened at its first lookup.
  std::array<std::optional<std::unique_ptr<DigestTable>>, 2> tables_ KILN_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Known> new_digests_ KILN_GUARDED_BY(mutex_);
  std::unordered_set<std::string> digesting_ KILN_GUARDED_BY(mutex_);  // paths that a thread is reading
  Condition digest_finished_;
  std::chrono::nanoseconds lock_wait_left_ KILN_GUARDED_BY(mutex_);  // for other processes, in total
  bool unsaved_ KILN_GUARDED_BY(mutex_) = false;
  std::size_t digested_ KILN_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln
