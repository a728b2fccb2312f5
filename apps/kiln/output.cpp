#include "apps/kiln/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kiln::cli {

Status write_output(const std::string& path, std::string_view bytes) {
  if (path == "-") return write_all(STDOUT_FILENO, bytes, "standard output");
  const Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
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
  const std::string folder = folder_of(path);
  const Fd directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return io_failure("cannot open", folder, errno);
  const std::string name = path.substr(path.rfind('/') + 1);
  const std::string temporary = '.' + name + '.' + std::to_string(getpid());
  return publish_file(directory.get(), temporary, name, {bytes}, Durability::Synced);
}

}  // namespace kiln::cli
