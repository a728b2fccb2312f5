#include <fcntl.h>

#include <cerrno>
#include <set>

#include "base/error.hpp"
#include "bundle/bundle_source.hpp"
#include "bundle/oci_layout.hpp"
#include "bundle/piece_files.hpp"

namespace kiln {
namespace {

/// What an image volume shows, or a folder that somebody unpacked one into. Files are mapped when they are asked for.
class BundleFolder final : public BundleSource {
 public:
  BundleFolder(Fd folder, std::string path) : folder_(std::move(folder)), path_(std::move(path)) {}

  Result<Bytes> head() override {
    const Result<OpenedFile> file = open_piece(folder_.get(), kBundleHeadName, shown(kBundleHeadName));
    if (!file) return file.error();
    return map_file(*file, shown(kBundleHeadName));
  }

  Result<Bytes> group(std::uint32_t number, std::uint64_t /*offset*/, std::uint64_t size) override {
    const std::string name = bundle_group_name(number);
    const Result<OpenedFile> file = opened(name, size);
    if (!file) return file.error();
    return map_file(*file, shown(name));
  }

  Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) override {
    std::set<std::string> expected{kBundleHeadName};
    if (const auto file = opened(kBundleHeadName, head_size); !file) return file.error();
    for (std::uint32_t number = 0; number < group_sizes.size(); ++number) {
      const std::string name = bundle_group_name(number);
      if (const auto file = opened(name, group_sizes[number]); !file) return file.error();
      expected.insert(name);
    }
    return check_nothing_else(folder_.get(), path_, expected, "the bundle");
  }

  std::string describe() const override { return path_; }

 private:
  std::string shown(const std::string& name) const { return join_path(path_, name); }

  Result<OpenedFile> opened(const std::string& name, std::uint64_t size) const {
    return open_piece(folder_.get(), name, shown(name), size, "the bundle");
  }

  const Fd folder_;
  const std::string path_;
};

Result<std::unique_ptr<BundleSource>> open_bundle_folder(const std::string& folder) {
  Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return io_failure("cannot open", folder, errno);
  return std::unique_ptr<BundleSource>(std::make_unique<BundleFolder>(std::move(fd), folder));
}

}  // namespace

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
