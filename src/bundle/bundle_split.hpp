// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "bundle/bundle_writer.hpp"

namespace kiln {

/// The members of a bundle that one kind of device uses. A value type.
struct BundlePart {
  std::string name;  ///< `sm_90`; `compute_90` for devices that have no machine code; otherwise a name for the target
  std::vector<BundleMember> members;
};

/// Splits the members of a bundle by device architecture, sorted by name. A device uses the part whose name fits it
/// best (compatibility_rank), and finds in it what it would find in the whole bundle: of each unit the best code that
/// the device can run, and all LTO-IR and architecture-specific code (`sm_90a`) for it. Code that no architecture
/// describes (OpenCL binaries, external code) forms a part for each target.
std::vector<BundlePart> split_by_architecture(const std::vector<BundleMember>& members);

/// Returns the index of the part name that serves a device best; nothing if none does.
std::optional<std::size_t> best_part(const std::vector<std::string>& names, const Target& device);

}  // namespace kiln
