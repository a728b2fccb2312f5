// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/target.hpp>

#include "bundle/bundle_format.hpp"
#include "core/dependency_set.hpp"

namespace kiln {

/// An artifact of a bundle with the data that the index needs. A value type.
struct IndexEntry {
  UnitKey unit;
  Target target;
  ArtifactKey key;
  RequestKey request;
  BlobLocation artifact;
  std::optional<BlobLocation> dependency_set;
};

/// Returns the index rows of artifacts that are in bundle order. The writer writes these rows, and verification expects
/// them. If several artifacts have the same unit and target, the first gets the row of the unit.
std::vector<BundleRow> index_rows(std::span<const IndexEntry> entries);

/// Returns true if a dependency set is usable on other machines.
bool is_shippable(const DependencySet& dependency_set);

}  // namespace kiln
