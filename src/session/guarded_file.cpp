#include "session/guarded_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kiln {
namespace {

constexpr off_t kLargestFile = 1 << 20;

// The group may be the user's own, which is how several distributions set the file mode by default.
Status check(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return failure(Code::Refused, "it is not a regular file");
  const bool by_others = (status.st_mode & S_IWOTH) != 0;
  const bool by_group = (status.st_mode & S_IWGRP) != 0 && status.st_gid != getegid();
  if (by_others || by_group) return failure(Code::Refused, "other users can write to it; run: chmod go-w on it");
  if (status.st_size > kLargestFile) return failure(Code::Refused, "it is larger than 1 MiB");
  return {};
}

}  // namespace

Result<std::optional<Bytes>> read_guarded_file(const std::string& path) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd && (errno == ENOENT || errno == ENOTDIR)) return std::optional<Bytes>();
  if (!fd) return failure(Code::Io, "it cannot be opened: " + errno_text(errno));
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return failure(Code::Io, "it cannot be looked at: " + errno_text(errno));
  if (Status checked = check(status); !checked) return std::move(checked).error();
  Result<Bytes> text = read_all(fd.get(), static_cast<std::size_t>(status.st_size), path);
  if (!text) return std::move(text).error();
  return std::optional<Bytes>(std::move(*text));
}

}  // namespace kiln
