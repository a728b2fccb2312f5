// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/bytes.hpp>
#include <kiln/result.hpp>

struct stat;

namespace kiln {

/// An owned file descriptor, closed in the destructor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// The stat fields that identify one state of a file without reading it.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  static FileStamp of(const struct stat& status);
  /// Returns whether the file could change again without changing its stamp: its times are less than `age` before
  /// `now`, or in the future.
  bool is_newer_than(std::chrono::nanoseconds age, std::chrono::nanoseconds now) const;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// Returns the stamp of a regular file, or nothing if the file is missing, unreachable or not a regular file.
std::optional<FileStamp> stamp_of(const char* path);

/// Return whether the path exists, and whether it is a directory.
bool exists(const std::string& path);
bool is_directory(const std::string& path);

/// Reads a whole regular file. Returns nothing if it does not exist, and an error if it is not a regular file.
Result<std::optional<Bytes>> read_file(const std::string& path);
/// Reads `size` bytes of an open file; fewer if the file is shorter.
Result<Bytes> read_all(int fd, std::size_t size, std::string_view name);

/// Writes all of `data` and retries after signals.
Status write_all(int fd, std::string_view data, std::string_view name);

/// Whether a published file must survive a crash of the machine.
enum class Durability { Synced, Unsynced };

/// Creates a file in `directory` with the concatenation of `parts`; removes it on failure. `mode` applies regardless of
/// the umask.
Status create_file(int directory, const std::string& name, std::initializer_list<std::string_view> parts,
                   Durability durability, std::optional<mode_t> mode = std::nullopt);
/// Renames `temporary` to `name` in `directory` and replaces an existing file; removes `temporary` on failure.
Status rename_file(int directory, const std::string& temporary, const std::string& name);

/// Creates and renames: the concatenation of `parts` appears as `name` in `directory` atomically. A reader sees the old
/// file, the new file or none, never a partial file. `temporary` is the interim name in `directory`; no other writer
/// may use it.
Status publish_file(int directory, const std::string& temporary, const std::string& name,
                    std::initializer_list<std::string_view> parts, Durability durability,
                    std::optional<mode_t> mode = std::nullopt);

/// Creates a directory with this mode, and missing parents with mode 0700.
Status make_directories(const std::string& path, mode_t mode = 0700);

/// Opens a directory that only this user or root can have written to. Returns Code::Denied, with the reason, if other
/// users can write to it, if it belongs to another user, or if it is not a directory. Returns Code::Unavailable if it
/// does not exist. `owners` are additional trusted users.
Result<Fd> open_trusted_directory(const std::string& path, const std::vector<uid_t>& owners = {});

/// Creates a directory of mode 0700, or accepts an existing one of this user and mode, below a directory in which other
/// users cannot replace it. Returns Code::Denied if other users have access to it. Follows no link in the last
/// component.
Status make_private_directory(const std::string& path);

/// Returns whether a directory is on a file system that other hosts see too. Mapping, locks and times are unreliable
/// there.
bool is_network_filesystem(int fd);

/// Returns a directory that is private to this user and local to this host, and creates it if missing. It holds locks
/// and data that is valid on this host only. Below XDG_RUNTIME_DIR, else below /tmp.
Result<std::string> host_local_directory();
/// Returns the path of that directory, whether or not it exists.
std::string host_local_path();

/// Returns the names in a directory, unsorted, or an error if not all of them can be read.
Result<std::vector<std::string>> read_directory(int directory, const char* path);
/// Returns the names in a directory; an unreadable directory counts as empty.
std::vector<std::string> list_directory(int directory, const char* path);

/// Returns the parent of a path: `a/b` for "a/b/c", `/` for "/c", `.` for "c".
std::string parent_path(const std::string& path);
/// Returns the last component of a path: `c` for all three.
std::string file_name(const std::string& path);

/// Returns `a/b` for "a" and "b"; `b` if "b" is absolute or "a" is empty.
std::string join_path(std::string_view directory, std::string_view name);

/// Normalizes `a//./b/` to `a/b`. Keeps `..`, which can lead to another directory through a symbolic link.
std::string normalize_path(std::string_view path);

}  // namespace kiln
