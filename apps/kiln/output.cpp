#include "apps/kiln/output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/replace_file.hpp"

namespace kiln::cli {

Status write_output(const std::string& path, std::string_view bytes) {
  if (path == "-") return write_all(STDOUT_FILENO, bytes, "standard output");
  struct stat status;
  const bool there = lstat(path.c_str(), &status) == 0;
  // In one step, so that whoever is killed meanwhile leaves no half of it for a build system to take as new. What is no
  // file (a device, a link to one) is not replaced by one.
  if (!there || S_ISREG(status.st_mode)) {
    return kiln::replace_file(path, bytes, Durability::Unsynced,
                              there ? std::optional<mode_t>(status.st_mode & 07777) : std::nullopt);
  }
  const Fd fd(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!fd) return io_failure("cannot write", path, errno);
  return write_all(fd.get(), bytes, path);
}

Status write_new_file(const std::string& path, std::string_view bytes) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd && errno == EEXIST) {
    return failure(Code::Io, path + " is there already, and is not overwritten; give another name");
  }
  if (!fd) return io_failure("cannot make", path, errno);
  Status status = write_all(fd.get(), bytes, path);
  if (!status) unlink(path.c_str());
  return status;
}

Status replace_file(const std::string& path, std::string_view bytes) {
  if (path.empty() || path.ends_with('/') || is_folder(path)) {
    return failure(Code::InvalidArgument, "'" + path + "' is a folder; give the name of a file");
  }
  return kiln::replace_file(path, bytes, Durability::Synced);
}

}  // namespace kiln::cli
