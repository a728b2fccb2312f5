#pragma once

#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "bundle/bundle_image.hpp"
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

/// Makes bundles. Equal members make equal bytes, in whatever order they come.
class BundleWriter {
 public:
  struct Options {
    std::string name_space = "local";
    std::uint64_t epoch = 0;
  };
  explicit BundleWriter(Options options) : options_(std::move(options)) {}

  /// A key that is there already is not taken again; false then. A second artifact for the same unit and target stays
  /// reachable by its key alone: the first is served.
  Result<bool> add(BundleMember member);
  std::size_t size() const { return members_.size(); }

  /// `key` is null for a bundle that nobody signs.
  Result<BundleImage> finish(const SecretKey* key) const;

 private:
  Options options_;
  std::vector<BundleMember> members_;
};

}  // namespace kiln
