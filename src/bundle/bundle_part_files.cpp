// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_part_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.hpp"

namespace kiln {

std::string bundle_group_name(std::uint32_t number) {
  const std::string digits = std::to_string(number);
  return "group-" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

Result<std::optional<OpenFile>> open_regular_file(int directory, const std::string& name, const std::string& shown) {
  // Non-blocking, so that a FIFO with this name cannot hang the caller.
  OpenFile file;
  file.fd = Fd(openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<OpenFile>();
    return io_error("cannot open", shown, errno);
  }
  struct stat status;
  if (fstat(file.fd.get(), &status) != 0) return io_error("cannot stat", shown, errno);
  if (!S_ISREG(status.st_mode)) return make_error(Code::Corrupt, shown + " is not a regular file");
  file.size = static_cast<std::uint64_t>(status.st_size);
  file.shown = shown;
  return std::optional<OpenFile>(std::move(file));
}

Result<OpenFile> open_part(int directory, const std::string& name, const std::string& shown) {
  auto file = open_regular_file(directory, name, shown);
  if (!file) return std::move(file).error();
  if (!*file) return make_error(Code::Corrupt, shown + " is missing");
  return std::move(**file);
}

Result<OpenFile> open_part(int directory, const std::string& name, const std::string& shown, std::uint64_t size,
                           const std::string& whole) {
  Result<OpenFile> file = open_part(directory, name, shown);
  if (file && file->size != size) {
    return make_error(Code::Corrupt, shown + " has " + std::to_string(file->size) + " bytes, but " + whole +
                                         " states " + std::to_string(size));
  }
  return file;
}

Status check_no_extra_files(int directory, const std::string& path, const std::set<std::string>& names,
                            const std::string& whole) {
  std::vector<std::string> found = list_directory(directory, ".");
  std::sort(found.begin(), found.end());  // sorted, so that a user who fixes them one by one sees a stable order
  for (const std::string& name : found) {
    if (!names.contains(name)) return make_error(Code::Corrupt, join_path(path, name) + " is not part of " + whole);
  }
  return {};
}

Status read_piece(const OpenFile& file, std::uint64_t offset, std::span<std::uint8_t> out) {
  if (offset > file.size || out.size() > file.size - offset) {
    return make_error(Code::Corrupt,
                      file.shown + " is truncated at byte " + std::to_string(file.size) + ": more data is expected");
  }
  while (!out.empty()) {
    const ssize_t got = pread(file.fd.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("cannot read", file.shown, errno);
    if (got == 0) {
      return make_error(Code::Corrupt,
                        file.shown +
                            " was truncated while it was in use: write a new file and rename it over the "
                            "old one");
    }
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
  return {};
}

}  // namespace kiln
