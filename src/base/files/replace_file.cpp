// SPDX-License-Identifier: Apache-2.0
#include "base/files/replace_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>

#include "base/clock.hpp"
#include "base/error.hpp"

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

Status replace_file(const std::string& path, std::string_view bytes, Durability durability,
                    std::optional<mode_t> mode) {
  const std::string parent = parent_path(path);
  const Fd directory(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return io_error("cannot open", parent, errno);
  const std::string name = file_name(path);
  const std::string prefix = '.' + name + '.';
  for (const std::string& other : list_directory(directory.get(), ".")) {
    const bool ours = other.starts_with(prefix) && other.size() == prefix.size() + kDigits &&
                      other.find_first_not_of("0123456789abcdef", prefix.size()) == std::string::npos;
    if (ours) remove_stale_file(directory.get(), other, std::chrono::hours(1));
  }
  // Not the process id: in a container it can equal the id of a killed predecessor.
  std::uint64_t own = 0;
  if (getrandom(&own, sizeof own, GRND_NONBLOCK) != sizeof own) {
    own = static_cast<std::uint64_t>(system_clock().steady().count());
  }
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(own));
  return publish_file(directory.get(), prefix + digits, name, {bytes}, durability, mode);
}

}  // namespace kiln
