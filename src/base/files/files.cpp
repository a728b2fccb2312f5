// SPDX-License-Identifier: Apache-2.0
#include "base/files/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>

#include "base/error.hpp"
#include "base/files/mounts.hpp"
#include "base/process/environment.hpp"

namespace kiln {
namespace {

constexpr std::int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

// Opens without blocking, so that a FIFO under the file's name cannot hang the caller. Regular files are unaffected.
Fd open_to_read(const std::string& path) {
  int fd;
  do {
    fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  return Fd(fd);
}

// Checks the open directory and not its name, so that a swap between the check and the use has no effect.
Status check_trusted(const struct stat& status, const std::string& path, const std::vector<uid_t>& owners) {
  const uid_t self = geteuid();
  const bool owned = status.st_uid == self || status.st_uid == 0 ||
                     std::find(owners.begin(), owners.end(), status.st_uid) != owners.end();
  if (!owned) {
    return make_error(Code::Denied, path + " belongs to user " + std::to_string(status.st_uid) +
                                        ", who is neither you nor root nor in the list of trusted users");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return make_error(Code::Denied, path + " can be written to by other users; run: chmod go-w '" + path + "'");
  }
  return {};
}

// Returns whether another user than root owns a directory or the link to it.
bool belongs_to_another(const std::string& path) {
  struct stat link;
  struct stat status;
  const auto other = [](uid_t owner) { return owner != 0 && owner != geteuid(); };
  return lstat(path.c_str(), &link) == 0 &&
         (other(link.st_uid) || (stat(path.c_str(), &status) == 0 && other(status.st_uid)));
}

// Returns false on failure; errno holds the cause.
bool put_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t put = ::write(fd, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    data.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

}  // namespace

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

FileStamp FileStamp::of(const struct stat& status) {
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size), nanoseconds(status.st_mtim),
          nanoseconds(status.st_ctim)};
}

bool FileStamp::is_newer_than(std::chrono::nanoseconds age, std::chrono::nanoseconds now) const {
  return std::max(modified_ns, changed_ns) > (now - age).count();
}

std::optional<FileStamp> stamp_of(const char* path) {
  struct stat status;
  if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileStamp::of(status);
}

Result<Bytes> read_all(int fd, std::size_t size, std::string_view name) {
  std::shared_ptr<std::uint8_t[]> buffer;
  try {
    // For overwrite, because zeroing the buffer costs as much as reading the file. From the heap, which reuses its
    // pages: a populated private mapping for each large file made a hit of 193 KB in a running process 2.4 times as
    // slow.
    buffer = std::make_shared_for_overwrite<std::uint8_t[]>(size);
  } catch (const std::bad_alloc&) {  // a sparse file can claim any size
    return make_error(Code::Io, std::string(name) + " is too large to read");
  }
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(fd, buffer.get() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("cannot read", name, errno);
    if (got == 0) break;  // the file shrank since fstat
    done += static_cast<std::size_t>(got);
  }
  const std::uint8_t* data = buffer.get();
  return Bytes(std::shared_ptr<const void>(std::move(buffer), data), data, done);
}

Result<std::optional<Bytes>> read_file(const std::string& path) {
  const Fd fd = open_to_read(path);
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<Bytes>();
    return io_error("cannot open", path, errno);
  }
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return io_error("cannot stat", path, errno);
  if (!S_ISREG(status.st_mode)) return make_error(Code::Io, path + " is not a regular file");
  auto bytes = read_all(fd.get(), static_cast<std::size_t>(status.st_size), path);
  if (!bytes) return std::move(bytes).error();
  return std::optional<Bytes>(std::move(*bytes));
}

Status write_all(int fd, std::string_view data, std::string_view name) {
  if (!put_all(fd, data)) return io_error("cannot write", name, errno);
  return {};
}

Status create_file(int directory, const std::string& name, std::initializer_list<std::string_view> parts,
                   Durability durability, std::optional<mode_t> mode) {
  Fd fd(openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) return io_error("cannot create", name, errno);
  // Removes the file before formatting the error, which may fail for lack of memory.
  const auto give_up = [&](const char* what) -> Status {
    const int error = errno;
    unlinkat(directory, name.c_str(), 0);
    return io_error(what, name, error);
  };
  if (mode && fchmod(fd.get(), *mode) != 0) return give_up("cannot set the mode of");
  for (const std::string_view part : parts) {
    if (!put_all(fd.get(), part)) return give_up("cannot write");
  }
  if (durability == Durability::Synced && fdatasync(fd.get()) != 0) return give_up("cannot sync");
  // close reports write errors that a network file system delayed.
  if (close(fd.release()) != 0) return give_up("cannot close");
  return {};
}

Status rename_file(int directory, const std::string& temporary, const std::string& name) {
  if (renameat(directory, temporary.c_str(), directory, name.c_str()) == 0) return {};
  const int error = errno;
  unlinkat(directory, temporary.c_str(), 0);
  return io_error("cannot publish", name, error);
}

Status publish_file(int directory, const std::string& temporary, const std::string& name,
                    std::initializer_list<std::string_view> parts, Durability durability, std::optional<mode_t> mode) {
  if (Status created = create_file(directory, temporary, parts, durability, mode); !created) return created;
  return rename_file(directory, temporary, name);
}

Status make_directories(const std::string& path, mode_t mode) {
  const std::string tidy = normalize_path(path);  // no trailing slash; empty for the working directory
  if (tidy.empty() && !path.empty()) return {};
  for (std::size_t end = tidy.find('/', 1);; end = tidy.find('/', end + 1)) {
    const std::string directory = tidy.substr(0, end);
    if (mkdir(directory.c_str(), end == std::string::npos ? mode : 0700) != 0 && errno != EEXIST) {
      const int error = errno;
      // On a read-only file system mkdir of an existing directory can report EROFS instead of EEXIST.
      struct stat status;
      if (stat(directory.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
        return io_error("cannot create", directory, error);
      }
    }
    if (end == std::string::npos) return {};
  }
}

Result<Fd> open_trusted_directory(const std::string& path, const std::vector<uid_t>& owners) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK;
  Fd fd(open(path.c_str(), kFlags | O_NOFOLLOW));
  if (!fd && (errno == ENOTDIR || errno == ELOOP)) {
    // A symbolic link of this user or root is followed: users move their caches to larger disks.
    struct stat link;
    if (lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
      if (link.st_uid != geteuid() && link.st_uid != 0) {
        return make_error(Code::Denied, path + " is a symbolic link that belongs to another user");
      }
      fd = Fd(open(path.c_str(), kFlags));
    } else {
      errno = ENOTDIR;
    }
  }
  if (!fd) {
    if (errno == ENOENT) return make_error(Code::Unavailable, path + " does not exist");
    if (errno == ENOTDIR) return make_error(Code::Denied, path + " is not a directory");
    return io_error("cannot open", path, errno);
  }
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return io_error("cannot stat", path, errno);
  if (Status trusted = check_trusted(status, path, owners); !trusted) return std::move(trusted).error();
  return fd;
}

Status make_private_directory(const std::string& path) {
  struct stat parent;
  if (stat(parent_path(path).c_str(), &parent) != 0) return io_error("cannot open", parent_path(path), errno);
  const bool is_shared = (parent.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (parent.st_mode & S_ISVTX) == 0;
  if (is_shared || (parent.st_uid != 0 && parent.st_uid != geteuid())) {
    return make_error(Code::Denied, "other users can replace the files of " + parent_path(path));
  }
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return io_error("cannot create", path, errno);
  const Fd own(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!own || fstat(own.get(), &status) != 0) return io_error("cannot open", path, errno);
  if (status.st_uid != geteuid() || (status.st_mode & 077) != 0) {
    return make_error(Code::Denied, path + " belongs to another user, or other users have access to it");
  }
  return {};
}

bool is_network_filesystem(int fd) {
  struct statfs status;
  if (fstatfs(fd, &status) != 0) return true;  // unknown: assume a network
  const FileSystemKind kind = kind_of(status);
  return kind == FileSystemKind::Network || kind == FileSystemKind::Userspace;
}

std::string host_local_path() {
  const std::optional<std::string> runtime = environment_variable("XDG_RUNTIME_DIR");
  // `sudo -E` and `su` keep the variable of the other user, who could replace a directory there.
  if (runtime && !runtime->empty() && runtime->front() == '/' && !belongs_to_another(*runtime))
    return *runtime + "/kiln";
  return "/tmp/kiln-" + std::to_string(geteuid());
}

Result<std::string> host_local_directory() {
  std::string path = host_local_path();
  // The parent is not checked: /tmp of a container can belong to an unknown user, or lack the sticky bit.
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return io_error("cannot create", path, errno);
  const Result<Fd> directory = open_trusted_directory(path);
  if (!directory) return directory.error();
  return path;
}

Result<std::vector<std::string>> read_directory(int directory, const char* path) {
  std::vector<std::string> names;
  Fd fd(openat(directory, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto close = [](DIR* open) { closedir(open); };
  const std::unique_ptr<DIR, decltype(close)> stream(fd ? fdopendir(fd.get()) : nullptr);
  if (stream == nullptr) return io_error("cannot list", path, errno);
  (void)fd.release();  // the stream owns it now
  errno = 0;
  while (const dirent* entry = readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return io_error("cannot list", path, errno);
  return names;
}

std::vector<std::string> list_directory(int directory, const char* path) {
  auto names = read_directory(directory, path);
  return names ? std::move(*names) : std::vector<std::string>();
}

bool exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

bool is_directory(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::string parent_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty() || (!name.empty() && name.front() == '/')) return std::string(name);
  std::string path(directory);
  if (path.back() != '/') path += '/';
  return path.append(name);
}

std::string normalize_path(std::string_view path) {
  std::string out;
  std::size_t at = 0;
  if (!path.empty() && path.front() == '/') out = "/";
  while (at < path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (!part.empty() && part != ".") {
      if (!out.empty() && out.back() != '/') out += '/';
      out += part;
    }
    at = end + 1;
  }
  return out;
}

}  // namespace kiln
