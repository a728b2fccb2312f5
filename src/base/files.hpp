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

/// Owns a file descriptor.
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

/// What tells one state of a file from another without reading it.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  static FileStamp of(const struct stat& status);
  /// Whether the file could have been changed again without its stamp showing it: its times are less than `age`
  /// before `now`, or in the future.
  bool younger_than(std::chrono::nanoseconds age, std::chrono::nanoseconds now) const;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

/// The stamp of a regular file; nothing where there is none (or where it cannot be reached, or is a directory).
std::optional<FileStamp> stamp_of(const char* path);

/// Whether there is anything at all under this name, and whether it is a folder.
bool exists(const std::string& path);
bool is_folder(const std::string& path);

/// The whole of a regular file. Nothing where it does not exist; an error for anything that is not a regular file.
Result<std::optional<Bytes>> read_file(const std::string& path);
/// Likewise of an open file, of which it reads `size` bytes.
Result<Bytes> read_all(int fd, std::size_t size, std::string_view name);

/// Writes all of it, whatever the signals.
Status write_all(int fd, std::string_view data, std::string_view name);

/// Whether what was published must survive a crash of the machine.
enum class Durability { Synced, Unsynced };

/// Makes a new file in `directory` of `parts`, joined; on failure there is none. With a `mode` it has that one whatever
/// the umask.
Status create_file(int directory, const std::string& name, std::initializer_list<std::string_view> parts,
                   Durability durability, std::optional<mode_t> mode = std::nullopt);
/// Gives a file of `directory` its name in it, in place of any that has it; on failure it is gone.
Status rename_file(int directory, const std::string& temporary, const std::string& name);

/// Both: `parts`, joined, appear as `name` in `directory` in one step: a reader sees the old file, the new file or
/// none, never half of one. `temporary` is the name (in `directory` too) that it has until then; it must be the
/// caller's own.
Status publish_file(int directory, const std::string& temporary, const std::string& name,
                    std::initializer_list<std::string_view> parts, Durability durability,
                    std::optional<mode_t> mode = std::nullopt);

/// Creates a folder and those above it, where they are not there, with this mode.
Status make_directories(const std::string& path, mode_t mode = 0700);

/// Opens a folder that only this user or root can have written to. Refuses, with the reason, one that others may write
/// to, one that belongs to someone else, and what is no folder at all; one that is not there is Code::Unavailable.
/// `owners` are further users to trust.
Result<Fd> open_trusted_directory(const std::string& path, const std::vector<uid_t>& owners = {});

/// Whether a folder is on a file system that other hosts see too, where mapping, locks and times cannot be relied on.
bool on_network(int fd);

/// A folder that is private to this user and local to this host, made if need be: for locks and for what is true on
/// this host only. Under XDG_RUNTIME_DIR, else under the system's temporary folder.
Result<std::string> host_local_directory();
/// Its path, whether it is there or not.
std::string host_local_path();

/// What is in a folder, by name only and in no order; an error where not all of it can be read.
Result<std::vector<std::string>> read_directory(int directory, const char* path);
/// Likewise for those to whom a folder that cannot be read is an empty one.
std::vector<std::string> list_directory(int directory, const char* path);

/// The folder that a path names a thing in: `a/b` from "a/b/c", `/` from "/c", `.` from "c".
std::string folder_of(const std::string& path);
/// And the thing's name there: `c` of all three.
std::string name_in_folder(const std::string& path);

/// `a/b` from "a" and "b"; `b` where it is absolute or "a" is empty.
std::string join_path(std::string_view folder, std::string_view name);

/// `a//./b/` → `a/b`. Not `..`: through a symbolic link that is another folder.
std::string tidy_path(std::string_view path);

}  // namespace kiln
