#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/mutex.hpp"
#include "bundle/bundle_source.hpp"
#include "bundle/mapped_file.hpp"
#include "bundle/oci_layout.hpp"
#include "bundle/piece_names.hpp"

namespace kiln {
namespace {

/// What an image volume shows, or a folder that somebody unpacked one into. Files are mapped when they are asked for.
class BundleFolder final : public BundleSource {
 public:
  BundleFolder(Fd folder, std::string path) : folder_(std::move(folder)), path_(std::move(path)) {}

  // Asked for again with every page of the index, so it is mapped once.
  Result<Bytes> head() override {
    MutexLock lock(mutex_);
    if (head_) return *head_;
    Result<OpenedFile> file = opened(kBundleHeadName);
    if (!file) return std::move(file).error();
    Result<Bytes> bytes = map_file(*file, shown(kBundleHeadName));
    if (bytes) head_ = *bytes;
    return bytes;
  }

  Result<Bytes> group(std::uint32_t number, std::uint64_t /*offset*/, std::uint64_t size) override {
    const std::string name = bundle_group_name(number);
    Result<OpenedFile> file = opened(name, size);
    if (!file) return std::move(file).error();
    return map_file(*file, shown(name));
  }

  Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) override {
    std::set<std::string> expected{kBundleHeadName};
    if (auto file = opened(kBundleHeadName, head_size); !file) return std::move(file).error();
    for (std::uint32_t number = 0; number < group_sizes.size(); ++number) {
      const std::string name = bundle_group_name(number);
      if (auto file = opened(name, group_sizes[number]); !file) return std::move(file).error();
      expected.insert(name);
    }
    std::vector<std::string> names = list_directory(folder_.get(), ".");
    std::sort(names.begin(), names.end());  // whoever fixes one after the other gets them in an order
    for (const std::string& name : names) {
      if (!expected.contains(name)) return failure(Code::Corrupt, shown(name) + " is no part of the bundle");
    }
    return {};
  }

  std::string describe() const override { return path_; }

 private:
  std::string shown(const std::string& name) const { return join_path(path_, name); }

  Result<OpenedFile> opened(const std::string& name) {
    auto file = open_regular_file(folder_.get(), name, shown(name));
    if (!file) return std::move(file).error();
    if (!*file) return failure(Code::Corrupt, shown(name) + " is missing");
    return std::move(**file);
  }

  Result<OpenedFile> opened(const std::string& name, std::uint64_t size) {
    Result<OpenedFile> file = opened(name);
    if (file && file->size != size) {
      return failure(Code::Corrupt, shown(name) + " has " + std::to_string(file->size) +
                                        " bytes, and the bundle says " + std::to_string(size));
    }
    return file;
  }

  const Fd folder_;
  const std::string path_;
  Mutex mutex_;
  std::optional<Bytes> head_ KILN_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::unique_ptr<BundleSource>> open_bundle_folder(const std::string& folder) {
  Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return io_failure("cannot open", folder, errno);
  return std::unique_ptr<BundleSource>(std::make_unique<BundleFolder>(std::move(fd), folder));
}

Result<std::unique_ptr<BundleSource>> open_bundle_source(const std::string& path) {
  if (!is_folder(path)) return open_bundle_file(path);
  if (is_oci_layout(path)) return open_oci_layout(path);
  const std::string inner = join_path(path, "kiln");
  for (const std::string& folder : {inner, path}) {
    if (exists(join_path(folder, kBundleHeadName))) return open_bundle_folder(folder);
  }
  return failure(Code::Unavailable, path +
                                        " is a folder without a bundle: a mounted image has kiln/head in it, one that "
                                        "was unpacked has head, an OCI image layout has oci-layout and index.json");
}

}  // namespace kiln
