#include "bundle/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "base/error.hpp"

namespace kiln {

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
