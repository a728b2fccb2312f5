// SPDX-License-Identifier: Apache-2.0
#include "base/files/owned_file.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.hpp"

namespace kiln {
namespace {

constexpr int kMaxLinks = 40;  // same limit as the kernel
constexpr mode_t kWritableByOthers = S_IWGRP | S_IWOTH;

bool is_own_or_root(uid_t owner) { return owner == 0 || owner == geteuid(); }

Error owned_by_another(const std::string& path, uid_t owner) {
  const std::string self = std::to_string(geteuid());
  return make_error(Code::Denied, path + " belongs to user " + std::to_string(owner) +
                                      ", who is neither this user nor root; to take ownership, run: chown " + self +
                                      " '" + path + "'");
}

Error writable_by_others(const std::string& path) {
  return make_error(Code::Denied, "other users can write to " + path + "; run: chmod go-w '" + path + "'");
}

Status check_directory(int fd, const std::string& path) {
  struct stat status;
  if (fstat(fd, &status) != 0) return io_error("cannot stat", path, errno);
  if (!is_own_or_root(status.st_uid)) return owned_by_another(path, status.st_uid);
  if ((status.st_mode & kWritableByOthers) == 0) return {};
  if (status.st_uid == 0 && (status.st_mode & S_ISVTX) != 0) return {};
  struct statvfs mount;
  if (status.st_uid == 0 && fstatvfs(fd, &mount) == 0 && (mount.f_flag & ST_RDONLY) != 0) return {};
  return writable_by_others(path);
}

Status check_file(const struct stat& status, const std::string& path, FileUse use) {
  if (!S_ISREG(status.st_mode)) return make_error(Code::Denied, path + " is not a regular file");
  if (!is_own_or_root(status.st_uid)) return owned_by_another(path, status.st_uid);
  if (use == FileUse::Obeyed) {
    if ((status.st_mode & kWritableByOthers) != 0) return writable_by_others(path);
    return {};
  }
  const mode_t forbidden = status.st_uid == geteuid() ? S_IRWXG | S_IRWXO : S_IWGRP | S_IRWXO;
  if ((status.st_mode & forbidden) == 0) return {};
  return make_error(Code::Denied, "other users can read or write " + path +
                                      "; replace the secret in it, or, if no other user has read "
                                      "it, run: chmod 600 '" +
                                      path + "'");
}

std::optional<std::string> target_of_link(int directory, const std::string& name) {
  char target[PATH_MAX];
  const ssize_t size = readlinkat(directory, name.c_str(), target, sizeof target);
  if (size <= 0 || size == sizeof target) return std::nullopt;
  return std::string(target, static_cast<std::size_t>(size));
}

/// A walk from the root directory to a file that checks each directory. Not thread-safe.
class PathWalk {
 public:
  /// `path` is absolute.
  Result<OwnedFile> open(std::string path, FileUse use) {
    rest_ = std::move(path);
    if (Status entered = enter_root(); !entered) return std::move(entered).error();
    for (;;) {
      const std::string name = next_name();
      if (name.empty()) return make_error(Code::Denied, place_ + " is not a regular file");
      struct stat status;
      if (fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return missing(name);
      if (S_ISLNK(status.st_mode)) {
        if (Status followed = follow(name, status.st_uid); !followed) return std::move(followed).error();
      } else if (S_ISDIR(status.st_mode)) {
        if (Status entered = enter(name); !entered) return std::move(entered).error();
      } else if (S_ISREG(status.st_mode)) {
        return open_file(name, use);
      } else {
        return make_error(Code::Denied, join_path(place_, name) + " is not a regular file");
      }
    }
  }

  /// Checks a directory and those on its path. `path` is absolute.
  Status check(std::string path) {
    rest_ = std::move(path);
    if (Status entered = enter_root(); !entered) return entered;
    for (std::string name = next_name(); !name.empty(); name = next_name()) {
      struct stat status;
      if (fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return missing(name);
      Status done = S_ISLNK(status.st_mode) ? follow(name, status.st_uid) : enter(name);
      if (!done) return done;
    }
    return {};
  }

 private:
  /// Removes and returns the next component; empty at the end.
  std::string next_name() {
    const std::size_t start = rest_.find_first_not_of('/');
    if (start == std::string::npos) return {};
    const std::size_t end = std::min(rest_.find('/', start), rest_.size());
    std::string name = rest_.substr(start, end - start);
    rest_.erase(0, end);
    return name;
  }

  Error missing(const std::string& name) const {
    if (errno == ENOENT || errno == ENOTDIR) {
      return make_error(Code::Unavailable, join_path(place_, name) + " does not exist");
    }
    return io_error("cannot open", join_path(place_, name), errno);
  }

  Status enter_root() {
    place_ = "/";
    directory_ = Fd(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory_) return io_error("cannot open", place_, errno);
    return check_directory(directory_.get(), place_);
  }

  Status enter(const std::string& name) {
    Fd next(openat(directory_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next) return missing(name);
    if (name == "..") {
      place_ = parent_path(place_);
    } else if (name != ".") {
      place_ = join_path(place_, name);
    }
    directory_ = std::move(next);
    return check_directory(directory_.get(), place_);
  }

  Status follow(const std::string& name, uid_t owner) {
    const std::string path = join_path(place_, name);
    if (!is_own_or_root(owner)) return owned_by_another(path, owner);
    if (++links_ > kMaxLinks) return make_error(Code::Denied, path + " has too many symbolic links");
    const std::optional<std::string> target = target_of_link(directory_.get(), name);
    if (!target) return make_error(Code::Io, "cannot read the symbolic link " + path);
    rest_ = *target + "/" + rest_;
    return target->front() == '/' ? enter_root() : Status();
  }

  // Non-blocking, so that a FIFO that replaced the file cannot hang the caller.
  Result<OwnedFile> open_file(const std::string& name, FileUse use) {
    const std::string path = join_path(place_, name);
    Fd fd(openat(directory_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
    if (!fd) return missing(name);
    struct stat status;
    if (fstat(fd.get(), &status) != 0) return io_error("cannot stat", path, errno);
    if (Status checked = check_file(status, path, use); !checked) return std::move(checked).error();
    return OwnedFile{std::move(fd), static_cast<std::uint64_t>(status.st_size)};
  }

  Fd directory_;
  std::string place_;  // real path of `directory_`
  std::string rest_;   // remaining path, relative to `directory_`
  int links_ = 0;
};

Result<std::string> absolute_path(const std::string& path) {
  if (path.starts_with('/')) return path;
  char here[PATH_MAX];
  if (getcwd(here, sizeof here) == nullptr) return io_error("cannot determine the directory of", path, errno);
  return join_path(here, path);
}

}  // namespace

bool is_owned(const struct stat& status, const std::vector<uid_t>& owners) {
  if ((status.st_mode & kWritableByOthers) != 0) return false;
  // In this order, because geteuid is a system call, which a cache hit avoids.
  return std::find(owners.begin(), owners.end(), status.st_uid) != owners.end() || is_own_or_root(status.st_uid);
}

Result<OwnedFile> open_owned_file(const std::string& path, FileUse use) {
  // Checked first: a missing file is not an error just because a directory on its path belongs to another user.
  struct stat any;
  if (stat(path.c_str(), &any) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
    return make_error(Code::Unavailable, path + " does not exist");
  }
  Result<std::string> whole = absolute_path(path);
  if (!whole) return std::move(whole).error();
  return PathWalk().open(*std::move(whole), use);
}

Status check_owned_directory(const std::string& path) {
  Result<std::string> whole = absolute_path(path);
  if (!whole) return std::move(whole).error();
  return PathWalk().check(*std::move(whole));
}

}  // namespace kiln
