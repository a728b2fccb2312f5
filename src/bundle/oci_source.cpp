// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/format.hpp"
#include "base/hash.hpp"
#include "base/mutex.hpp"
#include "bundle/bundle_part_files.hpp"
#include "bundle/oci_layout.hpp"
#include "bundle/oci_manifest.hpp"
#include "bundle/tar.hpp"

namespace kiln {
namespace {

Result<Bytes> read_json(const Result<OpenFile>& file, const std::string& shown) {
  if (!file) return file.error();
  if (file->size > kMaxOciJsonBytes) return make_error(Code::Corrupt, shown + " is larger than 4 MiB");
  return read_all(file->fd.get(), file->size, shown);
}

/// Returns the same error with its location in front.
Error in(const std::string& where, const Error& error) { return make_error(error.code, where + ": " + error.message); }

/// The blobs of a layout, which are named by their digests.
class Blobs {
 public:
  Blobs(Fd directory, std::string path) : directory_(std::move(directory)), path_(std::move(path)) {}

  std::string shown(const Digest& digest) const { return join_path(path_, digest.hex()); }

  /// Opens a blob and checks its size against its descriptor.
  Result<OpenFile> open(const OciDescriptor& descriptor) const {
    return open_part(directory_.get(), descriptor.digest.hex(), shown(descriptor.digest), descriptor.size, "the image");
  }

  /// Reads and verifies a manifest, an index or a config.
  Result<Bytes> read(const OciDescriptor& descriptor) {
    referred_.insert(descriptor.digest.hex());
    Result<Bytes> bytes = read_json(open(descriptor), shown(descriptor.digest));
    if (!bytes) return bytes;
    const Digest found = sha256({bytes->data(), bytes->size()});
    if (Status same = compare(descriptor.digest, found); !same) return std::move(same).error();
    return bytes;
  }

  /// Marks a layer as referenced and checks that it exists. Layers are large, so they are read on first use.
  Status mark_referenced(const OciDescriptor& layer) {
    referred_.insert(layer.digest.hex());
    const Result<OpenFile> file = open(layer);
    return file ? Status() : Status(file.error());
  }

  Status compare(const Digest& digest, const Digest& found) const {
    if (found == digest) return {};
    return make_error(Code::Corrupt, shown(digest) + " does not match its name: its content has a different SHA-256");
  }

  Status check_no_extra_blobs() const {
    return check_no_extra_files(directory_.get(), path_, referred_, "the image: copy it into a new directory");
  }

 private:
  Fd directory_;
  std::string path_;
  std::set<std::string> referred_;
};

/// A stream that digests a layer while it is read.
class LayerStream final : public ArchiveStream {
 public:
  explicit LayerStream(const OpenFile& file) : file_(file) {}

  std::uint64_t left() const override { return file_.size - at_; }
  Status read(std::span<char> out) override {
    const std::span<std::uint8_t> bytes(reinterpret_cast<std::uint8_t*>(out.data()), out.size());
    if (Status read = read_piece(file_, at_, bytes); !read) return read;
    sha256_.add(bytes);
    at_ += bytes.size();
    return {};
  }
  Status skip(std::uint64_t size) override {
    if (chunk_.empty()) chunk_.resize(kChunk);
    while (size > 0) {
      const std::size_t part = std::min<std::uint64_t>(size, chunk_.size());
      if (Status passed = read(std::span(chunk_).first(part)); !passed) return passed;
      size -= part;
    }
    return {};
  }
  /// Returns the digest. Must be called after everything was read.
  Digest digest() { return sha256_.finish(); }

 private:
  static constexpr std::size_t kChunk = 256 << 10;
  const OpenFile& file_;
  std::uint64_t at_ = 0;
  Sha256 sha256_;
  std::vector<char> chunk_;
};

class OciLayout final : public BundleSource {
 public:
  OciLayout(std::string path, Blobs blobs, std::vector<OciDescriptor> layers)
      : path_(std::move(path)), blobs_(std::move(blobs)), layers_(std::move(layers)) {}

  Result<std::uint64_t> head_size() override {
    const auto first = layer(0);
    if (!first) return first.error();
    return (*first)->files.front().size;
  }

  Status read_head(std::uint64_t offset, std::span<std::uint8_t> out) override {
    const auto first = layer(0);
    if (!first) return first.error();
    return read_file_of(**first, (*first)->files.front(), offset, out);
  }

  Status read_group(const BundleGroup& group, std::uint64_t offset, std::span<std::uint8_t> out) override {
    const std::uint32_t number = group.number;
    if (number >= layers_.size()) {
      return make_error(Code::Corrupt, path_ + " has no layer for group " + std::to_string(number));
    }
    const auto found = layer(number);
    if (!found) return found.error();
    const TarFile& file = (*found)->files.back();
    if (file.size != group.size) {
      return make_error(Code::Corrupt, blobs_.shown(layers_[number].digest) + " has " + std::to_string(file.size) +
                                           " bytes for group " + std::to_string(number) + ", but the bundle states " +
                                           std::to_string(group.size));
    }
    return read_file_of(**found, file, offset, out);
  }

  Status check(std::uint64_t head_size, std::span<const std::uint64_t> group_sizes) override {
    if (layers_.size() != group_sizes.size()) {
      return make_error(Code::Corrupt, path_ + " has " + std::to_string(layers_.size()) +
                                           " layers, but the bundle has " + std::to_string(group_sizes.size()) +
                                           " groups");
    }
    for (std::size_t number = 0; number < layers_.size(); ++number) {
      const std::uint64_t size = group_sizes[number];
      if (head_size > kMaxTarFileBytes || size > kMaxTarFileBytes ||
          layers_[number].size != (number == 0 ? tar_size({head_size, size}) : tar_size({size}))) {
        return make_error(Code::Corrupt, blobs_.shown(layers_[number].digest) + " does not have the size that group " +
                                             std::to_string(number) + " requires");
      }
      if (const auto file = blobs_.open(layers_[number]); !file) return file.error();
    }
    return blobs_.check_no_extra_blobs();
  }

  std::string describe() const override { return path_; }

 private:
  /// A layer with the locations of its files. Its digest was verified when it was first read. Later reads are verified
  /// with the digests of the bundle.
  struct Layer {
    OpenFile file;
    std::vector<TarFile> files;  ///< the head and a group in the first layer, a group in the others
  };

  static Status read_file_of(const Layer& layer, const TarFile& file, std::uint64_t offset,
                             std::span<std::uint8_t> out) {
    if (offset > file.size || out.size() > file.size - offset) {
      return make_error(Code::Corrupt, layer.file.shown + ": " + file.name + " is truncated");
    }
    return read_piece(layer.file, file.offset + offset, out);
  }

  /// Returns the layer with this number and digests it on first use. Two concurrent callers may both digest it, which
  /// only costs time. The pointer stays valid.
  Result<const Layer*> layer(std::uint32_t number) {
    {
      const MutexLock lock(mutex_);
      if (const auto known = read_.find(number); known != read_.end()) return &known->second;
    }
    Result<Layer> layer = read_layer(number);
    if (!layer) return std::move(layer).error();
    const MutexLock lock(mutex_);
    return &read_.try_emplace(number, std::move(*layer)).first->second;
  }

  Result<Layer> read_layer(std::uint32_t number) const {
    Result<OpenFile> file = blobs_.open(layers_[number]);
    if (!file) return std::move(file).error();
    LayerStream stream(*file);
    auto files = read_tar(stream, kOciDirectory);
    // If the tar file is invalid, the digest decides whether the layer is corrupt.
    if (Status passed = stream.skip(stream.left()); !passed) return std::move(passed).error();
    if (Status same = blobs_.compare(layers_[number].digest, stream.digest()); !same) return std::move(same).error();
    if (!files) return in(file->shown, files.error());
    std::vector<std::string> expected;
    if (number == 0) expected.push_back(std::string(kOciDirectory) + kBundleHeadName);
    expected.push_back(kOciDirectory + bundle_group_name(number));
    const bool same = std::equal(files->begin(), files->end(), expected.begin(), expected.end(),
                                 [](const TarFile& one, const std::string& wanted) { return one.name == wanted; });
    if (!same) {
      return make_error(Code::Corrupt, file->shown + " does not have the files of group " + std::to_string(number));
    }
    return Layer{std::move(*file), std::move(*files)};
  }

  const std::string path_;
  const Blobs blobs_;
  const std::vector<OciDescriptor> layers_;
  Mutex mutex_;
  std::map<std::uint32_t, Layer> read_ KILN_GUARDED_BY(mutex_);  // entries are never removed
};

/// Returns the layers of one manifest, after checking that its config lists the same layers.
Result<std::vector<OciDescriptor>> follow_manifest(Blobs& blobs, const OciDescriptor& descriptor) {
  const std::string shown = blobs.shown(descriptor.digest);
  if (descriptor.media_type != kOciManifest) {
    return make_error(Code::Corrupt, shown + " is of type " + descriptor.media_type + ", expected " + kOciManifest);
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
    return make_error(Code::Corrupt, blobs.shown(manifest->config.digest) + " lists other layers than " + shown);
  }
  return std::move(manifest->layers);
}

/// Returns the manifests of an image: the image itself, or one for each host architecture.
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
      return make_error(Code::Corrupt, blobs.shown(manifest.digest) + " has other layers than the manifest before it");
    }
    layers = std::move(*these);
  }
  for (const OciDescriptor& layer : *layers) {
    if (Status there = blobs.mark_referenced(layer); !there) return std::move(there).error();
  }
  if (Status alone = blobs.check_no_extra_blobs(); !alone) return std::move(alone).error();
  return std::move(*layers);
}

}  // namespace

Result<std::unique_ptr<BundleSource>> open_oci_layout(const std::string& directory) {
  const auto read_top = [&](const char* name) {
    const std::string path = join_path(directory, name);
    return read_json(open_part(AT_FDCWD, path, path), path);
  };
  const Result<Bytes> version = read_top(kOciLayoutFile);
  if (!version) return version.error();
  if (const Status known = parse_oci_layout_file(version->view()); !known) {
    return in(join_path(directory, kOciLayoutFile), known.error());
  }
  const Result<Bytes> index = read_top(kOciIndexFile);
  if (!index) return index.error();
  const auto images = parse_oci_index(index->view());
  if (!images) return in(join_path(directory, kOciIndexFile), images.error());
  if (images->size() != 1) {
    const auto name_of = [](const OciDescriptor& image) { return image.reference.substr(0, 128); };
    return make_error(Code::Corrupt, directory + " has " + std::to_string(images->size()) + " images (" +
                                         join_strings(*images, name_of) +
                                         "), but kiln reads layouts with one; 'kiln bundle pull oci:" + directory +
                                         ":NAME -o NEW' copies the one that the devices of this machine use");
  }
  const std::string blob_path = join_path(directory, kOciBlobs);
  Fd blob_directory(open(blob_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!blob_directory) {
    if (errno == ENOENT || errno == ENOTDIR) return make_error(Code::Corrupt, blob_path + " is missing");
    return io_error("cannot open", blob_path, errno);
  }
  Blobs blobs(std::move(blob_directory), blob_path);
  auto layers = follow_image(blobs, images->front());
  if (!layers) return std::move(layers).error();
  return std::unique_ptr<BundleSource>(std::make_unique<OciLayout>(directory, std::move(blobs), std::move(*layers)));
}

}  // namespace kiln
