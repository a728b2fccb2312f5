#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "base/mutex.hpp"
#include "bundle/oci_layout.hpp"
#include "bundle/oci_manifest.hpp"
#include "bundle/piece_files.hpp"
#include "bundle/tar.hpp"

namespace kiln {
namespace {

Result<Bytes> read_json(const Result<OpenedFile>& file, const std::string& shown) {
  if (!file) return file.error();
  if (file->size > kLargestOciJson) return failure(Code::Corrupt, shown + " is larger than 4 MiB");
  return read_all(file->fd.get(), file->size, shown);
}

/// The same error, with where it happened in front of it.
Error in(const std::string& where, const Error& error) { return failure(error.code, where + ": " + error.message); }

/// The blobs of a layout. They have no name but their digest.
class Blobs {
 public:
  Blobs(Fd folder, std::string path) : folder_(std::move(folder)), path_(std::move(path)) {}

  std::string shown(const Digest& digest) const { return join_path(path_, digest.hex()); }

  /// Of the size that its descriptor says.
  Result<OpenedFile> open(const OciDescriptor& descriptor) const {
    return open_piece(folder_.get(), descriptor.digest.hex(), shown(descriptor.digest), descriptor.size, "the image");
  }

  /// A manifest, an index or a config, checked.
  Result<Bytes> read(const OciDescriptor& descriptor) {
    referred_.insert(descriptor.digest.hex());
    Result<Bytes> bytes = read_json(open(descriptor), shown(descriptor.digest));
    if (!bytes) return bytes;
    if (Status same = compare(descriptor.digest, *bytes); !same) return std::move(same).error();
    return bytes;
  }

  /// Layers are large, so they are looked for at once and read when somebody needs them.
  Status refer(const OciDescriptor& layer) {
    referred_.insert(layer.digest.hex());
    const Result<OpenedFile> file = open(layer);
    return file ? Status() : Status(file.error());
  }

  Status compare(const Digest& digest, const Bytes& bytes) const {
    if (sha256({bytes.data(), bytes.size()}) == digest) return {};
    return failure(Code::Corrupt, shown(digest) + " is not what its name says: its content has another SHA-256");
  }

  Status nothing_else() const {
    return check_nothing_else(folder_.get(), path_, referred_, "the image: copy it into a new folder");
  }

 private:
  Fd folder_;
  std::string path_;
  std::set<std::string> referred_;
};

class OciLayout final : public BundleSource {
 public:
  OciLayout(std::string path, Blobs blobs, std::vector<OciDescriptor> layers)
      : path_(std::move(path)), blobs_(std::move(blobs)), layers_(std::move(layers)), mapped_(layers_.size()) {}

  Result<Bytes> head() override { return piece(0, kBundleHeadName); }

  Result<Bytes> group(std::uint32_t number, std::uint64_t /*offset*/, std::uint64_t size) override {
    if (number >= layers_.size()) {
      return failure(Code::Corrupt, path_ + " has no layer for group " + std::to_string(number));
    }
    Result<Bytes> bytes = piece(number, bundle_group_name(number));
    if (bytes && bytes->size() != size) {
      return failure(Code::Corrupt, blobs_.shown(layers_[number].digest) + " has " + std::to_string(bytes->size()) +
                                        " bytes for group " + std::to_string(number) + ", and the bundle says " +
                                        std::to_string(size));
    }
    return bytes;
  }

  Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) override {
    if (layers_.size() != group_sizes.size()) {
      return failure(Code::Corrupt, path_ + " has " + std::to_string(layers_.size()) + " layers, and the bundle has " +
                                        std::to_string(group_sizes.size()) + " groups");
    }
    for (std::size_t number = 0; number < layers_.size(); ++number) {
      const std::uint64_t size = group_sizes[number];
      if (head_size > kLargestTarFile || size > kLargestTarFile ||
          layers_[number].size != (number == 0 ? tar_size({head_size, size}) : tar_size({size}))) {
        return failure(Code::Corrupt, blobs_.shown(layers_[number].digest) + " is not of the size that group " +
                                          std::to_string(number) + " needs");
      }
      if (const auto file = blobs_.open(layers_[number]); !file) return file.error();
    }
    return blobs_.nothing_else();
  }

  std::string describe() const override { return path_; }

 private:
  /// A file of a layer.
  Result<Bytes> piece(std::uint32_t number, const std::string& name) {
    const Result<Bytes> bytes = layer(number);
    if (!bytes) return bytes.error();
    const std::string shown = blobs_.shown(layers_[number].digest);
    const auto files = read_tar({bytes->data(), bytes->size()}, kOciFolder);
    if (!files) return in(shown, files.error());
    std::vector<std::string> expected;
    if (number == 0) expected.push_back(std::string(kOciFolder) + kBundleHeadName);
    expected.push_back(kOciFolder + bundle_group_name(number));
    const bool same = std::equal(files->begin(), files->end(), expected.begin(), expected.end(),
                                 [](const TarFile& file, const std::string& wanted) { return file.name == wanted; });
    if (!same) return failure(Code::Corrupt, shown + " does not have the files of group " + std::to_string(number));
    const TarFile& file =
        *std::find_if(files->begin(), files->end(), [&](const TarFile& one) { return one.name == kOciFolder + name; });
    return bytes->part(file.offset, file.size);
  }

  /// Mapped, and digested the first time. Two who come at once both do it, which costs time and nothing else.
  Result<Bytes> layer(std::uint32_t number) {
    {
      MutexLock lock(mutex_);
      if (mapped_[number]) return *mapped_[number];
    }
    const Result<OpenedFile> file = blobs_.open(layers_[number]);
    if (!file) return file.error();
    Result<Bytes> bytes = map_file(*file, blobs_.shown(layers_[number].digest));
    if (!bytes) return bytes;
    if (Status same = blobs_.compare(layers_[number].digest, *bytes); !same) return std::move(same).error();
    MutexLock lock(mutex_);
    mapped_[number] = *bytes;
    return bytes;
  }

  const std::string path_;
  const Blobs blobs_;
  const std::vector<OciDescriptor> layers_;
  Mutex mutex_;
  std::vector<std::optional<Bytes>> mapped_ KILN_GUARDED_BY(mutex_);
};

/// The layers of one manifest, of which its config must say the same.
Result<std::vector<OciDescriptor>> follow_manifest(Blobs& blobs, const OciDescriptor& descriptor) {
  const std::string shown = blobs.shown(descriptor.digest);
  if (descriptor.media_type != kOciManifest) {
    return failure(Code::Corrupt, shown + " is of type " + descriptor.media_type + ", expected " + kOciManifest);
  }
  const Result<Bytes> text = blobs.read(descriptor);
  if (!text) return text.error();
  Result<OciManifest> manifest = parse_oci_manifest(text->view());
  if (!manifest) return in(shown, manifest.error());
  const Result<Bytes> config = blobs.read(manifest->config);
  if (!config) return config.error();
  const auto contents = parse_oci_config(config->view());
  if (!contents) return in(blobs.shown(manifest->config.digest), contents.error());
  const bool same = std::equal(contents->begin(), contents->end(), manifest->layers.begin(), manifest->layers.end(),
                               [](const Digest& one, const OciDescriptor& layer) { return one == layer.digest; });
  if (!same) {
    return failure(Code::Corrupt, blobs.shown(manifest->config.digest) + " says other layers than " + shown);
  }
  return std::move(manifest->layers);
}

/// The manifests of an image: itself, or one for each kind of host.
Result<std::vector<OciDescriptor>> manifests_of(Blobs& blobs, const OciDescriptor& image) {
  if (image.media_type != kOciIndex) return std::vector<OciDescriptor>{image};
  const Result<Bytes> text = blobs.read(image);
  if (!text) return text.error();
  auto manifests = parse_oci_index(text->view());
  if (!manifests) return in(blobs.shown(image.digest), manifests.error());
  return manifests;
}

Result<std::vector<OciDescriptor>> follow_image(Blobs& blobs, const OciDescriptor& image) {
  const auto manifests = manifests_of(blobs, image);
  if (!manifests) return manifests.error();
  std::optional<std::vector<OciDescriptor>> layers;
  for (const OciDescriptor& manifest : *manifests) {
    auto these = follow_manifest(blobs, manifest);
    if (!these) return these;
    if (layers && *layers != *these) {
      return failure(Code::Corrupt, blobs.shown(manifest.digest) + " has other layers than the manifest before it");
    }
    layers = std::move(*these);
  }
  for (const OciDescriptor& layer : *layers) {
    if (Status there = blobs.refer(layer); !there) return std::move(there).error();
  }
  if (Status alone = blobs.nothing_else(); !alone) return std::move(alone).error();
  return std::move(*layers);
}

}  // namespace

Result<std::unique_ptr<BundleSource>> open_oci_layout(const std::string& folder) {
  const auto read_top = [&](const char* name) {
    const std::string path = join_path(folder, name);
    return read_json(open_piece(AT_FDCWD, path, path), path);
  };
  const Result<Bytes> version = read_top(kOciLayoutFile);
  if (!version) return version.error();
  if (const Status known = parse_oci_layout_file(version->view()); !known) {
    return in(join_path(folder, kOciLayoutFile), known.error());
  }
  const Result<Bytes> index = read_top(kOciIndexFile);
  if (!index) return index.error();
  const auto images = parse_oci_index(index->view());
  if (!images) return in(join_path(folder, kOciIndexFile), images.error());
  if (images->size() != 1) {
    return failure(Code::Corrupt,
                   folder + " has " + std::to_string(images->size()) +
                       " images, and kiln reads a layout of one: copy the one you mean into a new folder");
  }
  const std::string blob_path = join_path(folder, kOciBlobs);
  Fd blob_folder(open(blob_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!blob_folder) {
    if (errno == ENOENT || errno == ENOTDIR) return failure(Code::Corrupt, blob_path + " is missing");
    return io_failure("cannot open", blob_path, errno);
  }
  Blobs blobs(std::move(blob_folder), blob_path);
  auto layers = follow_image(blobs, images->front());
  if (!layers) return std::move(layers).error();
  return std::unique_ptr<BundleSource>(std::make_unique<OciLayout>(folder, std::move(blobs), std::move(*layers)));
}

}  // namespace kiln
