// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include <kiln/result.hpp>

#include "base/files/files.hpp"

namespace kiln {

/// Returns whether another user can rename or replace what is in a directory: another user than root owns it, or others
/// can write to it and it has no sticky bit. False if it does not exist.
bool can_others_rename_in(const std::string& directory);

/// Returns `wanted` if no other user can rename directories in it, otherwise `host_local_directory()`.
Result<std::string> safe_temporary_parent(const std::string& wanted);

/// A private directory that the destructor removes with its contents. It is locked while the object exists, so that
/// `remove_stale` can tell which directories killed processes left. Not thread-safe.
class TemporaryDirectory {
 public:
  /// Creates a directory whose path is `prefix` and six letters.
  static Result<TemporaryDirectory> make(const std::string& prefix);
  TemporaryDirectory(TemporaryDirectory&&) noexcept = default;
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();

  const std::string& path() const { return path_; }

  /// Removes the directories that killed processes of this user made with `prefix`. Keeps those on a file system that
  /// does not lock directories, and all in a directory in which other users can rename them.
  static void remove_stale(const std::string& prefix);

 private:
  TemporaryDirectory(std::string path, Fd lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  std::string path_;
  Fd lock_;  // lock on the directory itself; if another process can take it, the owner is dead
};

}  // namespace kiln
