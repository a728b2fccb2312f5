// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/files/files.hpp"
#include "base/mutex.hpp"

struct statfs;

namespace kiln {

/// The source of file times, by file system type.
enum class FileSystemKind : unsigned char {
  Local,      ///< this kernel sets the change time on every change
  Image,      ///< read-only images, with times set by their builder, and overlays, which can contain such images
  Network,    ///< a server sets the change time by its own clock
  Userspace,  ///< FUSE and 9p: a user-space program sets the times
  Unknown,
};
FileSystemKind kind_of(const struct statfs& status);

/// A state of a regular file, with everything needed to recognize it later.
struct FileState {
  /// How long equal states imply equal content.
  enum class Scope : unsigned char { Now, Process, Host };

  FileStamp stamp;
  std::uint64_t mount = 0;      ///< id of the mount if the stamp alone does not identify the file, else 0
  bool external_clock = false;  ///< the times are not from this host's clock
  Scope scope = Scope::Host;    ///< Process: `mount` is meaningful in this process only

  bool same_as(const FileState& other) const { return stamp == other.stamp && mount == other.mount; }
};

/// A cache of the mounts that this process has seen, used to distinguish files with equal stamps. A device number is
/// not enough: images that are mounted one after the other on a loop device share it, and with normalized times the
/// whole stamp. Thread-safe.
class Mounts {
 public:
  /// `None` emulates kernels before Linux 6.8, for tests.
  enum class Ids : unsigned char { Unique, None };
  explicit Mounts(Ids ids = Ids::Unique) : ids_(ids) {}

  /// Returns the state of a regular file, or nothing if it is missing or unreachable.
  std::optional<FileState> look(const char* path);
  std::optional<FileState> look(int fd);

 private:
  struct Status;  // the result of one system call
  struct Mount {
    FileSystemKind kind = FileSystemKind::Unknown;
    std::uint64_t tag = 0;  ///< for FileState::mount; 0 if the mounts cannot be distinguished
  };

  std::optional<FileState> state_of(int fd, const char* path);
  std::optional<Status> status_of(int fd, const char* path) const;
  Mount mount_of(const Status& status, int fd, const char* path);
  Mount mount_in_epoch(const Status& status, int fd, const char* path, std::uint64_t epoch);
  std::optional<FileSystemKind> file_system_of(const Status& status, int fd, const char* path) const;
  std::uint64_t unique_tag(std::uint64_t id);
  std::uint64_t epoch();

  const Ids ids_;
  Mutex mutex_;
  // By unique id. Entries are never removed, so that the last one used can be read without the lock.
  std::unordered_map<std::uint64_t, Mount> known_ KILN_GUARDED_BY(mutex_);
  std::atomic<const std::pair<const std::uint64_t, Mount>*> last_{nullptr};
  std::optional<std::string> boot_ KILN_GUARDED_BY(mutex_);  // id of this boot
  // Used without unique ids: file system kinds by device while the mount table is unchanged, the open mount table, and
  // the number of its changes.
  std::unordered_map<std::uint64_t, FileSystemKind> devices_ KILN_GUARDED_BY(mutex_);
  Fd table_ KILN_GUARDED_BY(mutex_);
  std::uint64_t epoch_ KILN_GUARDED_BY(mutex_) = 0;
  int table_owner_ KILN_GUARDED_BY(mutex_) = 0;  // the process that opened `table_`
};

}  // namespace kiln
