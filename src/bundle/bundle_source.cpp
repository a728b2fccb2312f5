// SPDX-License-Identifier: Apache-2.0
#include "bundle/bundle_source.hpp"

#include <fcntl.h>

#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "bundle/bundle_part_files.hpp"

namespace kiln {
namespace {

Status copy_part(std::span<const std::uint8_t> from, std::uint64_t offset, std::span<std::uint8_t> out,
                 const std::string& name) {
  if (offset > from.size() || out.size() > from.size() - offset) {
    return make_error(Code::Corrupt, name + " is truncated");
  }
  if (!out.empty()) std::memcpy(out.data(), from.data() + offset, out.size());
  return {};
}

/// A bundle in a single file or buffer.
class SingleFileSource : public BundleSource {
 public:
  SingleFileSource(std::uint64_t size, std::string name) : size_(size), name_(std::move(name)) {}

  Result<std::uint64_t> head_size() final { return size_; }
  Status read_group(const BundleGroup& group, std::uint64_t offset, std::span<std::uint8_t> out) final {
    if (group.offset > size_ || group.size > size_ - group.offset || offset > group.size) {
      return make_error(Code::Corrupt,
                        name_ + " is truncated: group " + std::to_string(group.number) + " is incomplete");
    }
    return read_head(group.offset + offset, out);
  }
  Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) final {
    const std::uint64_t size = std::accumulate(group_sizes.begin(), group_sizes.end(), head_size);
    if (size == size_) return {};
    return make_error(Code::Corrupt, name_ + " has " + std::to_string(size_) + " bytes, but its header states " +
                                         std::to_string(size) +
                                         (size > size_ ? ": it is truncated" : ": it has trailing bytes"));
  }
  std::string describe() const final { return name_; }

 protected:
  const std::uint64_t size_;
  const std::string name_;
};

class FileSource final : public SingleFileSource {
 public:
  explicit FileSource(OpenFile file) : SingleFileSource(file.size, file.shown), file_(std::move(file)) {}

  Status read_head(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return read_piece(file_, offset, out);
  }

 private:
  const OpenFile file_;
};

class MemorySource final : public SingleFileSource {
 public:
  MemorySource(Bytes bytes, std::string name)
      : SingleFileSource(bytes.size(), std::move(name)), bytes_(std::move(bytes)) {}

  Status read_head(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return copy_part({bytes_.data(), bytes_.size()}, offset, out, name_);
  }

 private:
  const Bytes bytes_;
};

class ImageSource final : public BundleSource {
 public:
  ImageSource(const BundleImage& image, std::string name) : image_(image), name_(std::move(name)) {}

  Result<std::uint64_t> head_size() override { return image_.head.size(); }
  Status read_head(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return copy_part(as_bytes(image_.head), offset, out, name_);
  }
  Status read_group(const BundleGroup& group, std::uint64_t offset, std::span<std::uint8_t> out) override {
    const bool known = group.number < image_.groups.size();
    return copy_part(as_bytes(known ? std::string_view(image_.groups[group.number]) : ""), offset, out, name_);
  }
  Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) override {
    bool same = head_size == image_.head.size() && group_sizes.size() == image_.groups.size();
    for (std::size_t i = 0; same && i < group_sizes.size(); ++i) same = group_sizes[i] == image_.groups[i].size();
    return same ? Status() : make_error(Code::Corrupt, name_ + " does not have the sizes that its header states");
  }
  std::string describe() const override { return name_; }

 private:
  const BundleImage& image_;
  const std::string name_;
};

}  // namespace

Result<std::unique_ptr<BundleSource>> open_bundle_file(const std::string& path) {
  auto file = open_regular_file(AT_FDCWD, path, path);
  if (!file) return std::move(file).error();
  if (!*file)
    return make_error(Code::Unavailable,
                      "there is no bundle " + path + "; check the path, or create it with 'kiln bundle create'");
  if ((*file)->size == 0) return make_error(Code::Corrupt, path + " is empty: not a kiln bundle");
  return std::unique_ptr<BundleSource>(std::make_unique<FileSource>(std::move(**file)));
}

std::unique_ptr<BundleSource> bundle_in_memory(Bytes bytes, std::string name) {
  return std::make_unique<MemorySource>(std::move(bytes), std::move(name));
}

std::unique_ptr<BundleSource> bundle_in_image(const BundleImage& image, std::string name) {
  return std::make_unique<ImageSource>(image, std::move(name));
}

}  // namespace kiln
