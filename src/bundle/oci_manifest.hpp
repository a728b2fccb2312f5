// SPDX-License-Identifier: Apache-2.0
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

// The JSON files of an OCI image, limited to the members that the image of a bundle needs. Output has its members in
// sorted order and contains no time, so that equal images give equal files. The parsers accept arbitrary bytes and
// return an error for invalid text. Nothing is opened, and no parsed value is used as a path: digests are converted to
// 32 bytes.

inline constexpr const char* kOciIndex = "application/vnd.oci.image.index.v1+json";
inline constexpr const char* kOciManifest = "application/vnd.oci.image.manifest.v1+json";
inline constexpr const char* kOciConfig = "application/vnd.oci.image.config.v1+json";
inline constexpr const char* kOciLayer = "application/vnd.oci.image.layer.v1.tar";

// File names in an OCI image layout (oci_layout.hpp), and the directory of the image that contains the bundle.
inline constexpr const char* kOciLayoutFile = "oci-layout";
inline constexpr const char* kOciIndexFile = "index.json";
inline constexpr const char* kOciBlobs = "blobs/sha256";
inline constexpr const char* kOciDirectory = "kiln/";

inline constexpr std::size_t kMaxOciJsonBytes = 4 << 20;
inline constexpr std::size_t kMaxOciLayers = 128;
inline constexpr std::size_t kMaxOciManifests = 16;

/// A reference from one blob to another.
struct OciDescriptor {
  std::string media_type;
  Digest digest{};
  std::uint64_t size = 0;
  std::string architecture;  ///< with a manifest: its host architecture; empty if not stated
  std::string reference;     ///< with an image in the index of the layout: its name

  friend bool operator==(const OciDescriptor&, const OciDescriptor&) = default;
};

struct OciManifest {
  OciDescriptor config;
  std::vector<OciDescriptor> layers;
};

/// Returns `sha256:` and 64 hexadecimal digits.
std::string oci_digest(const Digest& digest);

std::string encode_oci_layout_file();
std::string encode_oci_index(std::span<const OciDescriptor> manifests);
std::string encode_oci_manifest(const OciManifest& manifest);
std::string encode_oci_config(const std::string& architecture, std::span<const OciDescriptor> layers);

Status parse_oci_layout_file(std::string_view text);
/// Returns one to sixteen descriptors.
Result<std::vector<OciDescriptor>> parse_oci_index(std::string_view text);
/// Returns a manifest of one to 128 layers, all of them uncompressed tar files.
Result<OciManifest> parse_oci_manifest(std::string_view text);
/// Returns the names in the list of tags that a registry returns: {"Tags": ["7-sm_90", …]}. Names that are not valid
/// tags are left out.
Result<std::vector<std::string>> parse_oci_tags(std::string_view text);
/// Returns true for a valid tag: 1 to 128 letters, digits and ._-, not starting with . or -.
bool is_oci_reference(std::string_view text);
/// Returns the digests of the uncompressed layers.
Result<std::vector<Digest>> parse_oci_config(std::string_view text);

}  // namespace kiln
