// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/result.hpp>

#include "core/dependency_set.hpp"
#include "core/request_context.hpp"

namespace kiln {

/// An artifact from a store. `dependency_set` is not set: the caller has it, and the key covers it.
struct Hit {
  Artifact artifact;
  Origin origin = Origin::Memory;
};

/// A store of artifacts by key, and of the dependency sets seen for each request. Every implementation and decorator
/// passes tests/conformance/store_conformance.hpp. Thread-safe.
///
/// A store never returns bytes other than those that were put. A corrupt entry is a miss or an error, and is repaired.
class Store {
 public:
  /// Number of dependency sets that a store retains per request.
  static constexpr std::size_t kMaxDependencySets = 16;

  virtual ~Store() = default;

  /// Returns the artifact, nothing on a miss, or an error if the store itself failed.
  virtual Result<std::optional<Hit>> get(const ArtifactKey& key, const RequestContext& context) = 0;
  /// Returns another artifact under the key than `rejected`, which the caller cannot use.
  virtual Result<std::optional<Hit>> get_excluding(const ArtifactKey& key, const Bytes& rejected,
                                                   const RequestContext& context);
  /// Stores an artifact. An existing entry can stay unchanged, because equal keys mean equivalent artifacts.
  virtual Status put(const ArtifactKey& key, const Artifact& artifact, const RequestContext& context) = 0;

  /// Returns the dependency sets seen for a request, newest first, at most `limit`. They are hints: the reader verifies
  /// the files and computes the key, so a lost, stale or forged hint only costs a compile. The newest is almost always
  /// correct, and a large dependency set takes longer to decode than an artifact takes to read. Request one first.
  virtual Result<std::vector<DependencySet>> dependency_sets(const RequestKey& request, std::size_t limit,
                                                             const RequestContext& context) = 0;
  /// Stores a dependency set as the newest of a request.
  virtual Status add_dependency_set(const RequestKey& request, const DependencySet& dependency_set,
                                    const RequestContext& context) = 0;

  /// Returns false if the store rejects puts: a bundle, the cache of an image, a mirror.
  virtual bool is_writable() { return true; }

  /// Returns a human-readable description: "disk /home/a/.cache/kiln".
  virtual std::string describe() const = 0;
};

inline Result<std::optional<Hit>> Store::get_excluding(const ArtifactKey& key, const Bytes& rejected,
                                                       const RequestContext& context) {
  auto hit = get(key, context);
  if (hit && *hit && (*hit)->artifact.bytes == rejected) return std::optional<Hit>();
  return hit;
}

}  // namespace kiln
