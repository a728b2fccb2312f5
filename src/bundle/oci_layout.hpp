#pragma once

#include <memory>
#include <string>

#include <kiln/result.hpp>

#include "bundle/bundle_image.hpp"
#include "bundle/bundle_source.hpp"

namespace kiln {

/// Writes an OCI image layout: one image whose layers are the head with the description, and each other group by
/// itself, as plain tar files, so that a group that did not change is a layer that need not move; it is there for each
/// kind of host, over the same layers. Equal images give equal files. The folder must not exist or be empty.
/// `reference` is the image's name in the layout's index. docs/oci.md says what is in it.
Status write_oci_layout(const BundleImage& image, const std::string& folder, const std::string& reference = "latest");

/// A layout as a source. Every descriptor is followed: a blob that is missing, of another size, of other content or
/// that nothing refers to is Code::Corrupt with its name. Layers are digested when they are first needed.
Result<std::unique_ptr<BundleSource>> open_oci_layout(const std::string& folder);

/// Whether a folder is one.
bool is_oci_layout(const std::string& folder);

}  // namespace kiln
