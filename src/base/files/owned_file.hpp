// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "base/files/files.hpp"

struct stat;

namespace kiln {

/// Returns whether only this user (the effective one), root and `owners` can have written a file or directory: one of
/// them owns it, and neither its group nor others can write to it.
bool is_owned(const struct stat& status, const std::vector<uid_t>& owners = {});

/// The use of a file. It decides which other users may have access to it.
enum class FileUse : unsigned char {
  Obeyed,  ///< other users may read but not write it (configuration, policy)
  Secret   ///< other users may neither read nor write it; a group may read a file of root's, as root decided
};

/// An open regular file and its size when it was opened.
struct OwnedFile {
  Fd fd;
  std::uint64_t size = 0;
};

/// Opens a file that no other user can have written or replaced: this user or root owns the file and every directory
/// and link on its path, and other users can write to none of them. Two kinds of directories that others can write to
/// are accepted, because they cannot replace the files of other users there: directories of root with the sticky bit,
/// such as /tmp, and directories of root on a read-only mount, such as a Kubernetes ConfigMap. This function resolves
/// links itself, so that it checks each directory by its descriptor and a later swap has no effect.
///
/// Returns Code::Unavailable if the file does not exist. Returns Code::Denied if a check fails; the message states the
/// path, its owner or mode, and the command that changes it.
Result<OwnedFile> open_owned_file(const std::string& path, FileUse use);

/// Makes the checks of `open_owned_file` for a directory and for the directories and links on its path. A directory
/// that passes can be replaced later only by this user and by root. Returns Code::Unavailable if it does not exist and
/// those that do exist on its path pass.
Status check_owned_directory(const std::string& path);

}  // namespace kiln
