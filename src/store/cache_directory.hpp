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
#include "base/files.hpp"
#include "base/mutex.hpp"

namespace kiln {

/// A cache's folder on disk: whom it trusts, how files get in and out, and what the errors of network file systems come
/// to. It knows nothing of what is in the files. Any thread, any number of processes.
///
/// Nothing is opened before the first read and nothing is made before the first write. The format version is part of
/// every path, so that two versions of kiln never see one another's files.
class CacheDirectory {
 public:
  static constexpr const char* kVersion = "v1";
  /// In each version's folder. It tells backup programs that this is a cache, and collectors that it is kiln's.
  static constexpr const char* kTag = "CACHEDIR.TAG";

  struct Options {
    std::string root;
    bool read_only = false;
    std::vector<uid_t> trusted_owners;  ///< besides this user and root
  };
  CacheDirectory(Options options, const Clock& clock);

  /// The opened folders. Whoever holds one may use its descriptors, whatever happens to the cache meanwhile.
  struct Folder {
    Fd root;
    Fd version;
    bool writable = false;  ///< it is this user's own, and not configured to be read only
  };
  using FolderPtr = std::shared_ptr<const Folder>;
  /// Null where there is no cache yet; an error, with the reason, where there is one that must not be used.
  Result<FolderPtr> folder();
  /// Makes it where it is not. An error where it cannot be written.
  Result<FolderPtr> folder_to_write();

  struct File {
    Bytes bytes;             ///< at most as many as were asked for
    std::uint64_t size = 0;  ///< of the whole file
    std::uint64_t inode = 0;
  };
  /// The first `most` bytes of a file of this version; nothing where it does not exist. Notes that it was used, at
  /// most hourly, and not at all where the cache is not ours or is on a network.
  Result<std::optional<File>> read(const char* name, std::size_t most);

  /// Makes a file of this version appear whole, in place of any there was. What a crash of the machine leaves
  /// half-written is found by its checksum, so nothing is synced. A process's first removes what writers that are gone
  /// have left half-written.
  ///
  /// `grows` is told of the new bytes when they are there and do not have their name yet, then of those that they
  /// replaced, or of themselves where that failed, as a negative number: whoever is killed in between has counted too
  /// much, never too little.
  using Grows = std::function<void(std::int64_t bytes)>;
  Status publish(const std::string& name, std::initializer_list<std::string_view> parts, const Grows& grows);

  /// Removes a file that is damaged, unless it is another by now. Returns whether it did.
  bool drop(const char* name, std::uint64_t inode);

  /// Whether a temporary file's name says that its writer is gone.
  bool writer_is_gone(std::string_view temporary) const;

  const std::string& root() const { return options_.root; }
  const Clock& clock() const { return clock_; }

 private:
  void forget(const FolderPtr& folder);
  Status make();
  void sweep_once(const Folder& folder);
  Status publish_once(const Folder& folder, const std::string& name, std::initializer_list<std::string_view> parts,
                      const std::function<void()>& written);
  std::string temporary_name();
  void note_use(const Folder& folder, int fd, std::int64_t modified_ns) const;

  const Options options_;
  const Clock& clock_;
  std::atomic<std::uint64_t> sequence_{0};
  std::atomic<pid_t> swept_by_{0};  // the process that did; a child of fork sweeps for itself
  mutable Mutex mutex_;
  FolderPtr folder_ KILN_GUARDED_BY(mutex_);
  std::string writer_ KILN_GUARDED_BY(mutex_);  // what this process's temporary names begin with
};

/// `entries/ab/abcd…` on the stack: a hit allocates nothing for its path.
class ShardedName {
 public:
  ShardedName(std::string_view kind, const Digest& digest);
  const char* c_str() const { return text_; }
  std::string str() const { return text_; }

 private:
  char text_[96];
};

}  // namespace kiln
