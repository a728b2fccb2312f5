#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "bundle/bundle_description.hpp"
#include "bundle/bundle_image.hpp"
#include "core/closure.hpp"
#include "trust/keys.hpp"

namespace kiln {

/// One artifact with all that a bundle says of it. A value.
struct BundleMember {
  std::string kind;   ///< of the unit
  UnitKey unit;       ///< `artifact.about.unit` is its name
  Artifact artifact;  ///< with its closure, where it read anything; its cost and log are not kept
  RequestKey request;
  Key key;
  std::string compiler;  ///< nvrtc
  std::string version;   ///< 13.0.88
  Digest compiler_digest{};
};

/// What a bundle's description says of a member, whose closure is null where the bundle does not have it.
BundleDescription::Artifact describe(const BundleMember& member, const Closure* closure);

/// Makes bundles. Equal members make equal bytes, in whatever order they come.
class BundleWriter {
 public:
  struct Options {
    std::string name_space = "local";
    std::uint64_t epoch = 0;
  };
  explicit BundleWriter(Options options) : options_(std::move(options)) {}

  /// A key that is there already is not taken again; false then. Of several artifacts for the same unit and target one
  /// is served, the first by key; the others stay reachable by their keys. Code::InvalidArgument where the target has
  /// no name, or where a closure that would be written does not give the key.
  Result<bool> add(BundleMember member);
  std::size_t size() const { return members_.size(); }

  /// `key` is null for a bundle that nobody signs.
  Result<BundleImage> finish(const SecretKey* key) const;

 private:
  Options options_;
  std::vector<BundleMember> members_;
  std::unordered_set<Key> keys_;
};

}  // namespace kiln
