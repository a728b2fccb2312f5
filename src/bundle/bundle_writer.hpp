// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "bundle/bundle_description.hpp"
#include "bundle/bundle_image.hpp"
#include "bundle/provenance.hpp"
#include "core/dependency_set.hpp"
#include "trust/keys.hpp"

namespace kiln {

/// An artifact with all of its metadata in a bundle. A value type.
struct BundleMember {
  std::string kind;   ///< kind of the unit
  UnitKey unit;       ///< `artifact.metadata.unit` is its name
  Artifact artifact;  ///< with its dependency set if it read files; its cost and log are not stored
  RequestKey request;
  ArtifactKey key;
  std::string compiler;  ///< nvrtc
  std::string version;   ///< 13.0.88
  Digest compiler_digest{};
};

/// Returns the description of a member. `dependency_set` is null if the bundle does not contain it.
BundleDescription::Artifact describe(const BundleMember& member, const DependencySet* dependency_set);

/// Writes bundles. Equal members give equal bytes, in any order. Not thread-safe.
class BundleWriter {
 public:
  struct Options {
    std::string name_space = "local";
    std::uint64_t epoch = 0;
    std::optional<ProvenanceSource> provenance;
  };
  explicit BundleWriter(Options options) : options_(std::move(options)) {}

  /// Adds a member. Returns false if its key was already added. If several artifacts have the same unit and target,
  /// lookups by unit return the first by key; the others stay reachable by key. Returns `Code::InvalidArgument` if the
  /// target has no name, or if a dependency set that would be written does not match the key.
  Result<bool> add(BundleMember member);
  std::size_t size() const { return members_.size(); }

  /// Encodes the bundle. `key` is null for an unsigned bundle.
  Result<BundleImage> finish(const SecretKey* key) const;

 private:
  Options options_;
  std::vector<BundleMember> members_;
  std::unordered_set<ArtifactKey> keys_;
};

}  // namespace kiln
