#include "bundle/bundle_source.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"

namespace kiln {
namespace {

/// Everything in one piece.
class WholeSource final : public BundleSource {
 public:
  WholeSource(Bytes bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  Result<Bytes> head() override { return bytes_; }
  Result<Bytes> group(std::uint32_t number, std::uint64_t offset, std::uint64_t size) override {
    if (offset > bytes_.size() || size > bytes_.size() - offset) {
      return failure(Code::Corrupt, name_ + " ends before its group " + std::to_string(number) + " does");
    }
    return bytes_.part(offset, size);
  }
  Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) override {
    const std::uint64_t size = std::accumulate(group_sizes.begin(), group_sizes.end(), head_size);
    if (size == bytes_.size()) return {};
    return failure(Code::Corrupt, name_ + " has " + std::to_string(bytes_.size()) + " bytes and its header says " +
                                      std::to_string(size) +
                                      (size > bytes_.size() ? ": it was cut short" : ": something was put behind it"));
  }
  std::string describe() const override { return name_; }

 private:
  const Bytes bytes_;
  const std::string name_;
};

}  // namespace

Result<std::unique_ptr<BundleSource>> open_bundle_file(const std::string& path) {
  // Opening is non-blocking so that a FIFO under a file's name cannot hang the caller.
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return io_failure("cannot open", path, errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0) return io_failure("cannot look at", path, errno);
  if (!S_ISREG(status.st_mode)) return failure(Code::Io, path + " is not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return failure(Code::Corrupt, path + " is empty: this is no bundle");
  // Nothing is read ahead: most of a bundle is for other GPUs than this machine's.
  void* const memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) return io_failure("cannot map", path, errno);
  const std::shared_ptr<const void> owner(memory,
                                          [size](const void* mapped) { munmap(const_cast<void*>(mapped), size); });
  return bundle_in_memory(Bytes(owner, static_cast<const std::uint8_t*>(memory), size), path);
}

std::unique_ptr<BundleSource> bundle_in_memory(Bytes bytes, std::string name) {
  return std::make_unique<WholeSource>(std::move(bytes), std::move(name));
}

}  // namespace kiln
