// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "backends/file_access.hpp"
#include "backends/pch.hpp"
#include "core/dependency_set.hpp"
#include "worker/pch_check.hpp"

namespace kiln {

/// A precompiled header: its path and the files that were read to create it.
struct Pch {
  std::string path;
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;            ///< XXH3 of the file
  DependencySet dependency_set;          ///< by content; checked before each use of the file
  std::vector<FileAccess> observations;  ///< the compiler's file accesses, in order
  std::string log{};                     ///< the compiler's log of the headers
  std::shared_ptr<const Fd> file{};      ///< the file if it has no name; `path` is then the one that workers use
  static constexpr std::size_t kMaxLogBytes = std::size_t{1} << 20;
};

/// The cache of this host's precompiled headers, in one directory. Each header is a large file that the compiler writes
/// and reads, and a small metadata file (docs/internals/formats/pch.md) next to it. The files are private to the host:
/// files that another host created are rejected, and a directory on a network file system is not used. Several
/// processes of the same user can share the directory. Usable in a child after fork, which does not affect the files
/// that its parent is creating. The first call opens or creates the directory.
///
/// A failure is not an error: a file that cannot be read or written counts as missing. `make_pch_cache` returns a cache
/// of files without a name instead if the options ask for it.
/// Thread-safe.
class PchCache {
 public:
  struct Options {
    std::string directory;                             ///< absolute path, because compilers run in other directories
    std::uint64_t max_bytes = std::uint64_t{2} << 30;  ///< limit for all files, in bytes; the least recently used are
                                                       ///< removed first
    std::string host;                                  ///< name of this host; empty means this machine
    enum class Storage : std::uint8_t {
      Disk,      ///< a directory that processes share
      Memory,    ///< the same, in memory; nothing is created while memory is low
      Nameless,  ///< files without a name in `directory`, for this process
    };
    Storage storage = Storage::Disk;
    std::string verdicts{};  ///< for Nameless: the directory of check results; empty means that they are not kept
  };
  explicit PchCache(Options options) : options_(std::move(options)) {}
  PchCache(const PchCache&) = delete;
  PchCache& operator=(const PchCache&) = delete;
  virtual ~PchCache() = default;
  const Options& options() const { return options_; }

  /// Looks up a key. The size of the file is checked; the caller must check its content. Counts as a use. An entry that
  /// is corrupt or has another version or host is removed, and `corruption` is set to the reason, unless another thread
  /// or process removes or replaces it.
  virtual std::optional<Pch> find(const Digest& key, std::string* corruption = nullptr);
  /// Returns true if a process on this host made this call for the same key before, within about a month.
  virtual bool requested_before(const Digest& key);

  /// The exclusive right to create the precompiled header of a key on this host, held for the lifetime of the object.
  /// The cache must outlive it.
  class Writer {
   public:
    Writer(Writer&&) = delete;
    virtual ~Writer() = default;  ///< removes an unpublished file
    /// Returns the path for the compiler's output. The name is unique, so that a compiler whose host process has died
    /// cannot write into the file of its successor.
    const std::string& path() const { return path_; }
    /// Returns the request to create the file.
    PchRequest order() const { return {PchRequest::Mode::Create, path_, 0, 0, {}, false, file_}; }
    /// Makes room for the compiler's file if the cache is in memory: as long as the writer exists, the file counts as
    /// `kLargestPch` bytes. Evicts entries; returns false if the files that are being created leave too little.
    virtual bool reserve() { return true; }
    /// Publishes the files under the key by rename, the large file before the small one, and then evicts entries if the
    /// size limit is exceeded. Rejects a file that alone exceeds the limit. `pch.path` is ignored.
    virtual Status publish(const Pch& pch) = 0;
    /// Publishes a check result under the key instead.
    virtual Status publish(const PchVerdict& verdict) = 0;

   protected:
    Writer(const Digest& key, std::string path, std::shared_ptr<const Fd> file)
        : key_(key), path_(std::move(path)), file_(std::move(file)), process_(getpid()) {}
    const Digest key_;
    const std::string path_;
    const std::shared_ptr<const Fd> file_;  // null if the file has a name
    const pid_t process_;
  };
  /// Returns null if another thread or process creates or removes the entry, or if the directory is unusable. The first
  /// call in a process removes the files that dead processes left.
  virtual std::unique_ptr<Writer> try_begin_write(const Digest& key);

  /// Returns the check result under this key; nothing if there is no readable one, or if it is older than 30 days or,
  /// for a rejection, one day.
  virtual std::optional<PchVerdict> verdict(const Digest& key);
  /// Stores a check result under a key, also while memory is low. Returns an error if another thread or process writes
  /// under this key, or if the directory is unusable.
  virtual Status publish_verdict(const Digest& key, const PchVerdict& verdict);

  /// Removes an entry that turned out to be unusable. Does nothing if a process is creating it: the new file will
  /// replace the old one. Returns false if another thread or process removes, has removed, or replaces the entry.
  virtual bool remove(const Digest& key);

  /// Disk usage, including files that are being created. Request markers, check results and the lock file do not count.
  struct Usage {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
  };
  virtual Usage usage() const;
  /// Removes every entry that no process is creating.
  virtual void clear();

 protected:
  const Options options_;

 private:
  class NamedWriter;
  std::unique_ptr<Writer> lock_key(const Digest& key);

  std::atomic<pid_t> swept_by_{0};  // process that removed stale files; a forked child does it again
};

/// Returns a cache with these options.
std::unique_ptr<PchCache> make_pch_cache(PchCache::Options options);

/// The size of the largest known precompiled header: all of CUB with NVRTC 13.4.
inline constexpr std::uint64_t kLargestPch = std::uint64_t{340} << 20;
/// The least memory that a cache in memory must be allowed to use: one precompiled header, and one that is being
/// created.
inline constexpr std::uint64_t kMinPchMemory = 2 * kLargestPch;
/// The part of the available memory that a cache in memory can use.
inline constexpr std::uint64_t kFreeMemoryParts = 4;

/// Encodes the small metadata file: docs/internals/formats/pch.md. It does not contain `path`, and only a digest of the
/// host's name.
std::string encode_pch(const Digest& key, const std::string& host, const Pch& pch);
/// Returns Code::Corrupt for bytes that are corrupt or have another version, key or host.
Result<Pch> decode_pch(std::string_view bytes, const Digest& key, const std::string& host);

}  // namespace kiln
