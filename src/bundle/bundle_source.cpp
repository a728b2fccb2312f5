#include "bundle/bundle_source.hpp"

#include <fcntl.h>

#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "bundle/piece_files.hpp"

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
  const auto file = open_regular_file(AT_FDCWD, path, path);
  if (!file) return file.error();
  if (!*file) return failure(Code::Unavailable, "there is no bundle " + path);
  if ((*file)->size == 0) return failure(Code::Corrupt, path + " is empty: this is no bundle");
  auto bytes = map_file(**file, path);
  if (!bytes) return std::move(bytes).error();
  return bundle_in_memory(std::move(*bytes), path);
}

std::unique_ptr<BundleSource> bundle_in_memory(Bytes bytes, std::string name) {
  return std::make_unique<WholeSource>(std::move(bytes), std::move(name));
}

}  // namespace kiln
