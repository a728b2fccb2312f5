// SPDX-License-Identifier: Apache-2.0
#include "base/files/temporary_directory.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/error.hpp"
#include "base/files/beneath.hpp"

namespace kiln {
namespace {

constexpr std::string_view kRandomCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
constexpr std::string_view kPattern = "XXXXXX";  // mkdtemp replaces it with letters

Fd open_directory(const std::string& path) {
  return Fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

// Uses the open directory, because its path can point elsewhere by now.
void remove_tree(int directory, const std::string& path) {
  remove_contents(directory);
  (void)rmdir(path.c_str());
}

// Returns false if `remove_stale` in another process took the directory for a stale one before it was locked.
bool lock_new(int directory) {
  if (directory < 0 || (flock(directory, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)) return false;
  struct stat status;
  return fstat(directory, &status) == 0 && status.st_nlink > 0;
}

}  // namespace

bool can_others_rename_in(const std::string& directory) {
  struct stat status;
  if (stat(directory.c_str(), &status) != 0) return false;
  if (status.st_uid != geteuid() && status.st_uid != 0) return true;
  return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (status.st_mode & S_ISVTX) == 0;
}

Result<std::string> safe_temporary_parent(const std::string& wanted) {
  if (!can_others_rename_in(wanted)) return wanted;
  Result<std::string> own = host_local_directory();
  if (own) return own;
  return make_error(Code::Denied, "another user can rename files in " + wanted +
                                      ", and there is no private directory: " + own.error().message +
                                      "; set TMPDIR to a private directory");
}

Result<TemporaryDirectory> TemporaryDirectory::make(const std::string& prefix) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string path = prefix + std::string(kPattern);
    if (mkdtemp(path.data()) == nullptr) break;
    Fd lock = open_directory(path);
    if (lock_new(lock.get())) return TemporaryDirectory(std::move(path), std::move(lock));
    (void)rmdir(path.c_str());
  }
  return io_error("cannot create a directory in", parent_path(prefix), errno);
}

TemporaryDirectory::~TemporaryDirectory() {
  if (lock_) remove_tree(lock_.get(), path_);
}

void TemporaryDirectory::remove_stale(const std::string& prefix) {
  const std::string parent = parent_path(prefix);
  // Another user could give any directory of this user such a name.
  if (can_others_rename_in(parent)) return;
  const std::string start = file_name(prefix);
  for (const std::string& name : list_directory(AT_FDCWD, parent.c_str())) {
    if (name.size() != start.size() + kPattern.size() || !name.starts_with(start) ||
        name.find_first_not_of(kRandomCharacters, start.size()) != std::string::npos) {
      continue;
    }
    const std::string path = join_path(parent, name);
    const Fd directory = open_directory(path);
    struct stat status;
    if (!directory || fstat(directory.get(), &status) != 0 || status.st_uid != geteuid()) continue;
    if (flock(directory.get(), LOCK_EX | LOCK_NB) == 0) remove_tree(directory.get(), path);
  }
}

}  // namespace kiln
