#include "bundle/oci_layout.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

bool is_reference(std::string_view text) {
  return !text.empty() && text.size() <= 128 && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                  c == '-';
         });
}

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

}  // namespace

Status write_oci_layout(const BundleImage& image, const std::string& directory, const std::string& reference) {
  if (image.groups.empty() || image.groups.size() > kMaxOciLayers) {
    return make_error(Code::InvalidArgument, "an image has layers for 1 to " + std::to_string(kMaxOciLayers) +
                                                 " groups, not " + std::to_string(image.groups.size()));
  }
  if (!is_reference(reference)) {
    return make_error(Code::InvalidArgument,
                      "'" + reference +
                          "' is not a valid image name: use at most 128 letters, digits and ._-, "
                          "not starting with . or -");
  }
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
  Result<OciDescriptor> written = put_image(blobs->get(), image);
  if (!written) return std::move(written).error();
  written->reference = reference;
  // The index is written last, so that an interrupted write leaves no valid layout.
  for (const auto& [name, text] : {std::pair(kOciLayoutFile, encode_oci_layout_file()),
                                   std::pair(kOciIndexFile, encode_oci_index({{*written}}))}) {
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
