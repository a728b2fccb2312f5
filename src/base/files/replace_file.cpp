// SPDX-License-Identifier: Apache-2.0
#include "base/files/replace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/process/system_info.hpp"

namespace kiln {
namespace {

constexpr std::size_t kDigits = 16;  // digits in the name of a temporary file

}  // namespace

void remove_stale_file(int directory, const std::string& name, std::chrono::nanoseconds age) {
  struct stat status;
  if (fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) return;
  const std::chrono::nanoseconds written(FileStamp::of(status).modified_ns);
  if (system_clock().wall() - written > age) (void)unlinkat(directory, name.c_str(), 0);
}

std::string temporary_name(const std::string& name) {
  // Not the process id: in a container it can equal the id of a killed predecessor.
  return '.' + name + '.' + random_digits();
}

void remove_stale_temporaries(int directory, const std::string& name) {
  const std::string prefix = '.' + name + '.';
  for (const std::string& other : list_directory(directory, ".")) {
    const bool ours = other.starts_with(prefix) && other.size() == prefix.size() + kDigits &&
                      other.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
    if (ours) remove_stale_file(directory, other, std::chrono::hours(1));
  }
}

Status replace_file(const std::string& path, std::string_view bytes, Durability durability,
                    std::optional<mode_t> mode) {
  const std::string parent = parent_path(path);
  const Fd directory(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return io_error("cannot open", parent, errno);
  const std::string name = file_name(path);
  remove_stale_temporaries(directory.get(), name);
  return publish_file(directory.get(), temporary_name(name), name, {bytes}, durability, mode);
}

}  // namespace kiln
