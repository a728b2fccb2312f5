#include "bundle/oci_layout.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/hash.hpp"
#include "bundle/oci_manifest.hpp"
#include "bundle/piece_files.hpp"
#include "bundle/tar.hpp"

namespace kiln {
namespace {

// Nothing in a bundle is for the host's processor, but a node picks an image that says it is for the node's and may
// refuse any other: so there is a manifest for each kind of host that NVIDIA has drivers for, over the same layers.
constexpr std::array<const char*, 2> kArchitectures = {"amd64", "arm64"};

bool is_reference(std::string_view text) {
  return !text.empty() && text.size() <= 128 && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
                  c == '-';
         });
}

/// Puts a blob into the layout's folder for them.
Result<OciDescriptor> put_blob(int folder, const char* media_type, std::string_view bytes) {
  OciDescriptor descriptor;
  descriptor.media_type = media_type;
  descriptor.digest = sha256(bytes);
  descriptor.size = bytes.size();
  const std::string name = descriptor.digest.hex();
  if (Status done = publish_file(folder, name + ".part", name, {bytes}, Durability::Unsynced); !done) {
    return std::move(done).error();
  }
  return descriptor;
}

Result<std::vector<OciDescriptor>> put_layers(int folder, const BundleImage& image) {
  std::vector<OciDescriptor> layers;
  for (std::uint32_t number = 0; number < image.groups.size(); ++number) {
    const TarInput group{kOciFolder + bundle_group_name(number), image.groups[number]};
    const TarInput head{std::string(kOciFolder) + kBundleHeadName, image.head};
    Result<std::string> layer = number == 0 ? write_tar(kOciFolder, {head, group}) : write_tar(kOciFolder, {group});
    if (!layer) return std::move(layer).error();
    Result<OciDescriptor> descriptor = put_blob(folder, kOciLayer, *layer);
    if (!descriptor) return std::move(descriptor).error();
    layers.push_back(std::move(*descriptor));
  }
  return layers;
}

Result<OciDescriptor> put_manifest(int folder, const char* architecture, const std::vector<OciDescriptor>& layers) {
  Result<OciDescriptor> config = put_blob(folder, kOciConfig, encode_oci_config(architecture, layers));
  if (!config) return config;
  Result<OciDescriptor> manifest = put_blob(folder, kOciManifest, encode_oci_manifest({std::move(*config), layers}));
  if (manifest) manifest->architecture = architecture;
  return manifest;
}

Result<OciDescriptor> put_image(int folder, const BundleImage& image) {
  const Result<std::vector<OciDescriptor>> layers = put_layers(folder, image);
  if (!layers) return layers.error();
  std::vector<OciDescriptor> manifests;
  for (const char* architecture : kArchitectures) {
    Result<OciDescriptor> manifest = put_manifest(folder, architecture, *layers);
    if (!manifest) return manifest;
    manifests.push_back(std::move(*manifest));
  }
  return put_blob(folder, kOciIndex, encode_oci_index(manifests));
}

Result<Fd> open_folder(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return io_failure("cannot open", path, errno);
  return fd;
}

}  // namespace

Status write_oci_layout(const BundleImage& image, const std::string& folder, const std::string& reference) {
  if (image.groups.empty() || image.groups.size() > kMostOciLayers) {
    return failure(Code::InvalidArgument, "an image has layers for 1 to " + std::to_string(kMostOciLayers) +
                                              " groups, not " + std::to_string(image.groups.size()));
  }
  if (!is_reference(reference)) {
    return failure(Code::InvalidArgument, "'" + reference +
                                              "' cannot name an image: letters, digits and ._- can, at most 128 of "
                                              "them, the first no . or -");
  }
  const std::string blob_path = join_path(folder, kOciBlobs);
  if (Status made = make_directories(folder, 0755); !made) return made;
  const Result<Fd> top = open_folder(folder);
  if (!top) return top.error();
  if (!list_directory(top->get(), ".").empty()) {
    return failure(Code::InvalidArgument, folder + " is not empty: name a folder that does not exist yet");
  }
  if (Status made = make_directories(blob_path, 0755); !made) return made;
  const Result<Fd> blobs = open_folder(blob_path);
  if (!blobs) return blobs.error();
  Result<OciDescriptor> written = put_image(blobs->get(), image);
  if (!written) return std::move(written).error();
  written->reference = reference;
  // The index comes last: what was interrupted is no layout.
  for (const auto& [name, text] : {std::pair(kOciLayoutFile, encode_oci_layout_file()),
                                   std::pair(kOciIndexFile, encode_oci_index({{*written}}))}) {
    if (Status done = publish_file(top->get(), std::string(name) + ".part", name, {text}, Durability::Unsynced);
        !done) {
      return done;
    }
  }
  return {};
}

bool is_oci_layout(const std::string& folder) {
  return exists(join_path(folder, kOciLayoutFile)) && exists(join_path(folder, kOciIndexFile));
}

}  // namespace kiln
