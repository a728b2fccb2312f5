#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

namespace kiln {

// The JSON files of an OCI image, as far as a bundle's image needs them. What is written has its members in the order
// of their names, and no time, so that equal images are equal files. Any text may be parsed; nothing is opened, and
// nothing that is parsed is ever a path: a digest is 32 bytes by then.

inline constexpr const char* kOciIndex = "application/vnd.oci.image.index.v1+json";
inline constexpr const char* kOciManifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr const char* kOciConfig = "application/vnd.oci.image.config.v1+json";
inline constexpr const char* kOciLayer = "application/vnd.oci.image.layer.v1.tar";

// Where things are in a layout, and in which folder of the image the bundle's files are.
inline constexpr const char* kOciLayoutFile = "oci-layout";
inline constexpr const char* kOciIndexFile = "index.json";
inline constexpr const char* kOciBlobs = "blobs/sha256";
inline constexpr const char* kOciFolder = "kiln/";

inline constexpr std::size_t kLargestOciJson = 4 << 20;
inline constexpr std::size_t kMostOciLayers = 128;
inline constexpr std::size_t kMostOciManifests = 16;

/// What one blob says of another.
struct OciDescriptor {
  std::string media_type;
  Digest digest{};
  std::uint64_t size = 0;
  std::string architecture;  ///< of a manifest: for which hosts; empty: it does not say
  std::string reference;     ///< of an image in the layout's index: its name

  friend bool operator==(const OciDescriptor&, const OciDescriptor&) = default;
};

struct OciManifest {
  OciDescriptor config;
  std::vector<OciDescriptor> layers;
};

/// `sha256:` and 64 hexadecimal digits.
std::string oci_digest(const Digest& digest);

std::string encode_oci_layout_file();
std::string encode_oci_index(std::span<const OciDescriptor> manifests);
std::string encode_oci_manifest(const OciManifest& manifest);
std::string encode_oci_config(const std::string& architecture, std::span<const OciDescriptor> layers);

Status parse_oci_layout_file(std::string_view text);
/// One to sixteen descriptors.
Result<std::vector<OciDescriptor>> parse_oci_index(std::string_view text);
/// One to 128 layers, all of them tar files that nobody compressed.
Result<OciManifest> parse_oci_manifest(std::string_view text);
/// The digests of the layers' contents.
Result<std::vector<Digest>> parse_oci_config(std::string_view text);

}  // namespace kiln
