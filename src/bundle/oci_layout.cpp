// SPDX-License-Identifier: Apache-2.0
#include "bundle/oci_layout.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <set>
#include <string_view>

#include "base/error.hpp"
#include "base/files/files.hpp"
#include "base/hash.hpp"
#include "bundle/bundle_part_files.hpp"
#include "bundle/oci_manifest.hpp"
#include "bundle/tar.hpp"

namespace kiln {
namespace {

// Nothing in a bundle depends on the CPU of the host. But a node selects an image for its own architecture and may
// reject any other, so there is a manifest for each architecture with NVIDIA drivers, over the same layers.
constexpr std::array<const char*, 2> kArchitectures = {"amd64", "arm64"};

/// Writes a blob into the blob directory of the layout.
Result<OciDescriptor> put_blob(int directory, const char* media_type, std::string_view bytes) {
  OciDescriptor descriptor;
  descriptor.media_type = media_type;
  descriptor.digest = sha256(bytes);
  descriptor.size = bytes.size();
  const std::string name = descriptor.digest.hex();
  if (Status done = publish_file(directory, name + ".part", name, {bytes}, Durability::Unsynced); !done) {
    return std::move(done).error();
  }
  return descriptor;
}

Result<std::vector<OciDescriptor>> put_layers(int directory, const BundleImage& image) {
  std::vector<OciDescriptor> layers;
  for (std::uint32_t number = 0; number < image.groups.size(); ++number) {
    const TarInput group{kOciDirectory + bundle_group_name(number), image.groups[number]};
    const TarInput head{std::string(kOciDirectory) + kBundleHeadName, image.head};
    Result<std::string> layer =
        number == 0 ? write_tar(kOciDirectory, {head, group}) : write_tar(kOciDirectory, {group});
    if (!layer) return std::move(layer).error();
    Result<OciDescriptor> descriptor = put_blob(directory, kOciLayer, *layer);
    if (!descriptor) return std::move(descriptor).error();
    layers.push_back(std::move(*descriptor));
  }
  return layers;
}

Result<OciDescriptor> put_manifest(int directory, const char* architecture, const std::vector<OciDescriptor>& layers) {
  Result<OciDescriptor> config = put_blob(directory, kOciConfig, encode_oci_config(architecture, layers));
  if (!config) return config;
  Result<OciDescriptor> manifest = put_blob(directory, kOciManifest, encode_oci_manifest({std::move(*config), layers}));
  if (manifest) manifest->architecture = architecture;
  return manifest;
}

Result<OciDescriptor> put_image(int directory, const BundleImage& image) {
  const Result<std::vector<OciDescriptor>> layers = put_layers(directory, image);
  if (!layers) return layers.error();
  std::vector<OciDescriptor> manifests;
  for (const char* architecture : kArchitectures) {
    Result<OciDescriptor> manifest = put_manifest(directory, architecture, *layers);
    if (!manifest) return manifest;
    manifests.push_back(std::move(*manifest));
  }
  return put_blob(directory, kOciIndex, encode_oci_index(manifests));
}

Result<Fd> open_directory(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return io_error("cannot open", path, errno);
  return fd;
}

Status check_images(std::span<const OciImage> images) {
  if (images.empty() || images.size() > kMaxOciManifests) {
    return make_error(Code::InvalidArgument, "a layout has 1 to " + std::to_string(kMaxOciManifests) + " images, not " +
                                                 std::to_string(images.size()));
  }
  std::set<std::string_view> references;
  for (const OciImage& each : images) {
    const std::size_t groups = each.image->groups.size();
    if (groups == 0 || groups > kMaxOciLayers) {
      return make_error(Code::InvalidArgument, "an image has layers for 1 to " + std::to_string(kMaxOciLayers) +
                                                   " groups, not " + std::to_string(groups));
    }
    if (!is_oci_reference(each.reference)) {
      return make_error(Code::InvalidArgument,
                        "'" + each.reference +
                            "' is not a valid image name: use at most 128 letters, digits and ._-, "
                            "not starting with . or -");
    }
    if (!references.insert(each.reference).second) {
      return make_error(Code::InvalidArgument, "two images have the name '" + each.reference + "'");
    }
  }
  return {};
}

}  // namespace

Status write_oci_layout(const BundleImage& image, const std::string& directory, const std::string& reference) {
  const OciImage one{&image, reference};
  return write_oci_images({&one, 1}, directory);
}

Status write_oci_images(std::span<const OciImage> images, const std::string& directory) {
  if (Status good = check_images(images); !good) return good;
  const std::string blob_path = join_path(directory, kOciBlobs);
  if (Status made = make_directories(directory, 0755); !made) return made;
  const Result<Fd> top = open_directory(directory);
  if (!top) return top.error();
  if (!list_directory(top->get(), ".").empty()) {
    return make_error(Code::InvalidArgument, directory + " is not empty: name a directory that does not exist yet");
  }
  for (const std::string& below : {parent_path(blob_path), blob_path}) {
    if (Status made = make_directories(below, 0755); !made) return made;
  }
  const Result<Fd> blobs = open_directory(blob_path);
  if (!blobs) return blobs.error();
  std::vector<OciDescriptor> descriptors;
  for (const OciImage& each : images) {
    Result<OciDescriptor> written = put_image(blobs->get(), *each.image);
    if (!written) return std::move(written).error();
    written->reference = each.reference;
    descriptors.push_back(std::move(*written));
  }
  // The index is written last, so that an interrupted write leaves no valid layout.
  for (const auto& [name, text] :
       {std::pair(kOciLayoutFile, encode_oci_layout_file()), std::pair(kOciIndexFile, encode_oci_index(descriptors))}) {
    if (Status done = publish_file(top->get(), std::string(name) + ".part", name, {text}, Durability::Unsynced);
        !done) {
      return done;
    }
  }
  return {};
}

bool is_oci_layout(const std::string& directory) {
  return exists(join_path(directory, kOciLayoutFile)) && exists(join_path(directory, kOciIndexFile));
}

}  // namespace kiln
