// SPDX-License-Identifier: Apache-2.0
#include "base/files/beneath.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

namespace kiln {
namespace {

constexpr int kToPass = O_PATH | O_DIRECTORY;
constexpr int kToList = O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_NOCTTY;

bool is_name(std::string_view component) { return !component.empty() && component != "." && component != ".."; }

// Opens one component. The system reports ENOTDIR for a link in place of a directory; this function reports ELOOP, as
// for any other link.
Fd open_name(int directory, const char* name, int flags) {
  Fd fd(openat(directory, name, flags | O_NOFOLLOW | O_CLOEXEC));
  if (fd || errno != ENOTDIR) return fd;
  struct stat status;
  const bool link = fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
  errno = link ? ELOOP : ENOTDIR;
  return fd;
}

// Calls `step` with the directory and the name of each component. `step` returns the descriptor of the component; an
// invalid descriptor ends the iteration. `last` is true for the final component.
template <typename Step>
Fd walk(int directory, std::string_view path, const Step& step) {
  Fd at;
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string name(path.substr(0, slash));
    if (!is_name(name)) {
      errno = EINVAL;
      return {};
    }
    const bool last = slash == std::string_view::npos;
    Fd next = step(at ? at.get() : directory, name.c_str(), last);
    if (!next || last) return next;
    at = std::move(next);
    path.remove_prefix(slash + 1);
  }
}

Fd create_directory(int directory, const char* name, mode_t mode) {
  if (mkdirat(directory, name, 0777) != 0) return errno == EEXIST ? open_name(directory, name, kToPass) : Fd();
  Fd made = open_name(directory, name, kToList);
  struct stat status;
  if (!made || fstat(made.get(), &status) != 0) return {};
  // A directory that another process created in this window can belong to another user.
  if (status.st_uid == geteuid() && fchmod(made.get(), mode) != 0) return {};
  return made;
}

}  // namespace

Fd open_beneath(int directory, const char* path, int flags, Resolution resolution) {
  if (resolution == Resolution::Kernel) {
    open_how how{};
    how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    Fd fd(static_cast<int>(syscall(SYS_openat2, directory, path, &how, sizeof how)));
    if (fd || (errno != ENOSYS && errno != EPERM)) return fd;
  }
  return walk(directory, path,
              [&](int at, const char* name, bool last) { return open_name(at, name, last ? flags : kToPass); });
}

Fd open_directory_beneath(int directory, const char* path, Resolution resolution) {
  return open_beneath(directory, path, kToPass, resolution);
}

Fd make_directory_beneath(int directory, const char* path, mode_t mode, Resolution resolution) {
  Fd there = open_directory_beneath(directory, path, resolution);
  if (there || errno != ENOENT) return there;
  return walk(directory, path, [&](int at, const char* name, bool) { return create_directory(at, name, mode); });
}

std::optional<FileStamp> stamp_in(int directory, const char* name) {
  struct stat status;
  if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  if (S_ISREG(status.st_mode)) return FileStamp::of(status);
  errno = EINVAL;
  return std::nullopt;
}

bool remove_file_in(int directory, const char* name) {
  return stamp_in(directory, name) && unlinkat(directory, name, 0) == 0;
}

void remove_contents(int directory) noexcept {
  Fd self(openat(directory, ".", kToList | O_CLOEXEC));
  DIR* const stream = self ? fdopendir(self.get()) : nullptr;
  if (stream == nullptr) return;
  (void)self.release();  // the stream owns it now
  while (const dirent* entry = readdir(stream)) {
    const char* const name = entry->d_name;
    if (!is_name(name) || unlinkat(directory, name, 0) == 0) continue;
    if (const Fd below = open_name(directory, name, kToList)) remove_contents(below.get());
    (void)unlinkat(directory, name, AT_REMOVEDIR);
  }
  closedir(stream);
}

}  // namespace kiln
