// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include <kiln/result.hpp>

#include "bundle/bundle_image.hpp"
#include "bundle/bundle_source.hpp"

namespace kiln {

/// Writes an OCI image layout with one image. The first layer holds the head with the description, and each other group
/// is a layer of its own. Layers are uncompressed tar files, so an unchanged group is a layer that need not be
/// transferred. The image has a manifest for each host architecture over the same layers. Equal images give equal
/// files. `directory` must not exist or must be empty. `reference` is the name of the image in the index of the layout.
/// See docs/how-to/container-images.md.
Status write_oci_layout(const BundleImage& image, const std::string& directory,
                        const std::string& reference = "latest");

/// An image of a layout and its name.
struct OciImage {
  const BundleImage* image = nullptr;
  std::string reference;
};
/// As above, with up to kMaxOciManifests images, whose names must differ. Equal layers are stored once.
Status write_oci_images(std::span<const OciImage> images, const std::string& directory);

/// Opens a layout with one image as a source and follows every descriptor. A blob that is missing, has a different size
/// or content, or is not referenced is `Code::Corrupt` with its name. Layers are digested on first use.
Result<std::unique_ptr<BundleSource>> open_oci_layout(const std::string& directory);

/// Returns true if a directory is an OCI image layout.
bool is_oci_layout(const std::string& directory);

}  // namespace kiln
