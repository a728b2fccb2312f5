#include "bundle/piece_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <vector>

#include "base/error.hpp"

namespace kiln {

std::string bundle_group_name(std::uint32_t number) {
  const std::string digits = std::to_string(number);
  return "group-" + std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0') + digits;
}

Result<std::optional<OpenedFile>> open_regular_file(int directory, const std::string& name, const std::string& shown) {
  // Non-blocking, so that a FIFO under this name cannot hang the caller.
  OpenedFile file;
  file.fd = Fd(openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::optional<OpenedFile>();
    return io_failure("cannot open", shown, errno);
  }
  struct stat status;
  if (fstat(file.fd.get(), &status) != 0) return io_failure("cannot look at", shown, errno);
  if (!S_ISREG(status.st_mode)) return failure(Code::Corrupt, shown + " is not a regular file");
  file.size = static_cast<std::uint64_t>(status.st_size);
  return std::optional<OpenedFile>(std::move(file));
}

Result<OpenedFile> open_piece(int directory, const std::string& name, const std::string& shown) {
  auto file = open_regular_file(directory, name, shown);
  if (!file) return std::move(file).error();
  if (!*file) return failure(Code::Corrupt, shown + " is missing");
  return std::move(**file);
}

Result<OpenedFile> open_piece(int directory, const std::string& name, const std::string& shown, std::uint64_t size,
                              const std::string& whole) {
  Result<OpenedFile> file = open_piece(directory, name, shown);
  if (file && file->size != size) {
    return failure(Code::Corrupt, shown + " has " + std::to_string(file->size) + " bytes, and " + whole + " says " +
                                      std::to_string(size));
  }
  return file;
}

Status check_nothing_else(int directory, const std::string& path, const std::set<std::string>& names,
                          const std::string& whole) {
  std::vector<std::string> found = list_directory(directory, ".");
  std::sort(found.begin(), found.end());  // whoever fixes one after the other gets them in an order
  for (const std::string& name : found) {
    if (!names.contains(name)) return failure(Code::Corrupt, join_path(path, name) + " is no part of " + whole);
  }
  return {};
}

Result<Bytes> map_file(const OpenedFile& file, const std::string& shown) {
  if (file.size == 0) return Bytes();
  const std::size_t size = file.size;
  // Nothing is read ahead: most of a bundle is for other GPUs than this machine's.
  void* const start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  if (start == MAP_FAILED) return io_failure("cannot map", shown, errno);
  std::shared_ptr<const void> owner(start, [size](const void* at) { munmap(const_cast<void*>(at), size); });
  return Bytes(std::move(owner), static_cast<const std::uint8_t*>(start), size);
}

}  // namespace kiln
