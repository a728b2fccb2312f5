// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "bundle/bundle_source.hpp"

namespace kiln {

/// Adds a bundle that is installed with code of this process to every session of the process. Like a bundle that is
/// linked into a library, it is as trusted as that code and needs no signature. Opens it once, to return an error if it
/// is missing or is not a bundle. Adding a path again has no effect. Thread-safe, also in a forked child.
Status use_bundle(const std::string& path);
/// Opens a bundle that was added. A file or directory that every user can write to is `Code::Denied`.
Result<std::unique_ptr<BundleSource>> open_program_bundle(const std::string& path);
/// Returns how many bundles were added so far.
std::size_t program_bundle_count();
/// Returns the absolute paths of these bundles, in the order in which they were added.
std::vector<std::string> program_bundles();

}  // namespace kiln
