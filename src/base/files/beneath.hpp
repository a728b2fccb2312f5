// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "base/files/files.hpp"

// Operations below an open directory that other users can write to. They follow no symbolic link in any component of a
// path and never leave the directory. A caller first opens the directory of a file and then uses the system's *at calls
// with the file name alone, so that a directory that is swapped during this time changes nothing outside. On failure
// errno holds the cause; ELOOP means a symbolic link. Thread-safe.

namespace kiln {

/// The method that resolves the components of a path. Both methods give the same results.
enum class Resolution {
  Kernel,  ///< by openat2; falls back to Walk if the kernel lacks it or a sandbox forbids it
  Walk,    ///< one component at a time
};

/// Opens an existing file below `directory`. `path` is relative, and no component is "." or "..".
Fd open_beneath(int directory, const char* path, int flags, Resolution resolution = Resolution::Kernel);

/// Opens a directory below `directory` for operations on names in it. Needs no read permission for it.
Fd open_directory_beneath(int directory, const char* path, Resolution resolution = Resolution::Kernel);

/// Opens a directory like `open_directory_beneath` and creates the missing components of `path` with exactly this mode,
/// regardless of the umask. The mode of a directory that exists, or that belongs to another user, stays unchanged.
Fd make_directory_beneath(int directory, const char* path, mode_t mode, Resolution resolution = Resolution::Kernel);

/// Returns the stamp of the regular file `name` in `directory`, or nothing if it is missing, a link or another file
/// type.
std::optional<FileStamp> stamp_in(int directory, const char* name);

/// Removes the regular file `name` from `directory` and returns true. For any other file type it removes nothing and
/// sets errno to EINVAL.
bool remove_file_in(int directory, const char* name);

/// Removes the contents of a directory, skipping what it cannot remove. Links are removed and not followed. Allocates
/// nothing itself, so that destructors can call it.
void remove_contents(int directory) noexcept;

}  // namespace kiln
