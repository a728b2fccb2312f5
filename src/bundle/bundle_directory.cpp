// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <cerrno>
#include <limits>
#include <map>
#include <set>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "bundle/bundle_part_files.hpp"
#include "bundle/bundle_source.hpp"
#include "bundle/oci_layout.hpp"

namespace kiln {
namespace {

constexpr std::uint32_t kHeadPiece = std::numeric_limits<std::uint32_t>::max();

/// A mounted image volume, or a directory into which an image was unpacked. Files are opened on first use and stay
/// open. Thread-safe.
class BundleDirectory final : public BundleSource {
 public:
  BundleDirectory(Fd directory, std::string path) : directory_(std::move(directory)), path_(std::move(path)) {}

  Result<std::uint64_t> head_size() override {
    const auto file = head();
    if (!file) return file.error();
    return (*file)->size;
  }

  Status read_head(std::uint64_t offset, std::span<std::uint8_t> out) override {
    const auto file = head();
    return file ? read_piece(**file, offset, out) : Status(file.error());
  }

  Status read_group(const BundleGroup& group, std::uint64_t offset, std::span<std::uint8_t> out) override {
    const auto file = piece(group.number, [&] { return opened(bundle_group_name(group.number), group.size); });
    return file ? read_piece(**file, offset, out) : Status(file.error());
  }

  Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) override {
    std::set<std::string> expected{kBundleHeadName};
    if (const auto file = opened(kBundleHeadName, head_size); !file) return file.error();
    for (std::uint32_t number = 0; number < group_sizes.size(); ++number) {
      const std::string name = bundle_group_name(number);
      if (const auto file = opened(name, group_sizes[number]); !file) return file.error();
      expected.insert(name);
    }
    return check_no_extra_files(directory_.get(), path_, expected, "the bundle");
  }

  std::string describe() const override { return path_; }

 private:
  std::string shown(const std::string& name) const { return join_path(path_, name); }

  Result<OpenFile> opened(const std::string& name, std::uint64_t size) const {
    return open_part(directory_.get(), name, shown(name), size, "the bundle");
  }

  Result<const OpenFile*> head() {
    return piece(kHeadPiece, [&] { return open_part(directory_.get(), kBundleHeadName, shown(kBundleHeadName)); });
  }

  /// Returns the file with this number and opens it with `open` on first use. The pointer stays valid.
  template <class Open>
  Result<const OpenFile*> piece(std::uint32_t number, const Open& open) {
    const MutexLock lock(mutex_);
    if (const auto known = files_.find(number); known != files_.end()) return &known->second;
    Result<OpenFile> file = open();
    if (!file) return std::move(file).error();
    return &files_.emplace(number, std::move(*file)).first->second;
  }

  const Fd directory_;
  const std::string path_;
  Mutex mutex_;
  std::map<std::uint32_t, OpenFile> files_ KILN_GUARDED_BY(mutex_);  // entries are never removed
};

Result<std::unique_ptr<BundleSource>> open_bundle_directory(const std::string& directory) {
  Fd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return io_error("cannot open", directory, errno);
  return std::unique_ptr<BundleSource>(std::make_unique<BundleDirectory>(std::move(fd), directory));
}

}  // namespace

Result<std::unique_ptr<BundleSource>> open_bundle_source(const std::string& path) {
  if (!is_directory(path)) return open_bundle_file(path);
  if (is_oci_layout(path)) return open_oci_layout(path);
  const std::string inner = join_path(path, "kiln");
  for (const std::string& directory : {inner, path}) {
    if (exists(join_path(directory, kBundleHeadName))) return open_bundle_directory(directory);
  }
  return make_error(Code::Unavailable, path +
                                           " is a directory without a bundle: a mounted image contains kiln/head, an "
                                           "unpacked one head, an OCI image layout oci-layout and index.json");
}

}  // namespace kiln
