// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/output/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/files/replace_file.hpp"

namespace kiln::cli {

Status write_output(const std::string& path, std::string_view bytes) {
  if (path == "-") return write_all(STDOUT_FILENO, bytes, "standard output");
  struct stat status;
  const bool there = lstat(path.c_str(), &status) == 0;
  // Replace a regular file atomically, so that a killed process leaves no partial file that a build system takes as
  // up to date. A device, or a link to one, is written in place.
  if (!there || S_ISREG(status.st_mode)) {
    return kiln::replace_file(path, bytes, Durability::Unsynced,
                              there ? std::optional<mode_t>(status.st_mode & 07777) : std::nullopt);
  }
  const Fd fd(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd) return io_error("cannot write", path, errno);
  return write_all(fd.get(), bytes, path);
}

Status write_new_file(const std::string& path, std::string_view bytes) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd && errno == EEXIST) {
    return make_error(Code::Io, path + " already exists and is not overwritten; give another name");
  }
  if (!fd) return io_error("cannot create", path, errno);
  Status status = write_all(fd.get(), bytes, path);
  if (!status) unlink(path.c_str());
  return status;
}

Status replace_file(const std::string& path, std::string_view bytes) {
  if (path.empty() || path.ends_with('/') || is_directory(path)) {
    return make_error(Code::InvalidArgument, "'" + path + "' is a directory; give the name of a file");
  }
  return kiln::replace_file(path, bytes, Durability::Synced);
}

}  // namespace kiln::cli
