// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <kiln/cccl.hpp>
#include <kiln/result.hpp>

#include "apps/kiln/arguments.hpp"
#include "apps/kiln/output/console.hpp"
#include "bundle/bundle.hpp"
#include "session/config/trust_policy_file.hpp"
#include "trust/keys.hpp"

namespace kiln::cli {

/// A bundle opened for inspection, and whether the policy trusts it. Inspecting a bundle does not require trust.
struct OpenBundle {
  std::string path;
  std::unique_ptr<Bundle> bundle;
  Status trust_status;
};

/// Opens the bundle at `path`. A bundle that is not trusted is not an error; a missing or corrupt one is. The error
/// contains the path.
Result<OpenBundle> open_for_inspection(const std::string& path, const TrustPolicy& policy);
/// Opens the bundles of the command line for inspection. Warns for each bundle that this machine does not trust.
Result<std::vector<OpenBundle>> open_bundle_arguments(const Arguments& arguments, Console& console);

/// Opens the bundles of the command line, whose artifacts will be signed with `key`. Each must be signed by a key that
/// this machine trusts or by `key` itself. Unsigned bundles are rejected even if trust.unsigned allows this machine to
/// use them.
Result<std::vector<OpenBundle>> open_to_sign(const Arguments& arguments, const SecretKey& key, Console& console);

/// Returns the description of a CCCL artifact of a bundle; nothing for other artifacts and for one that cannot be read.
std::optional<cccl::ArtifactInfo> cccl_info(const OpenBundle& open, const BundleDescription::Artifact& artifact);

/// `acme/vision, epoch 3, signed by 3fa9c2d1e0b74a55`
std::string identity_text(const std::string& name_space, std::uint64_t epoch, const std::optional<KeyId>& signer);
std::optional<KeyId> signer_of(const BundleHeader& header);

/// The identity of a bundle that is being written: namespace, epoch, signing key and provenance.
struct BundleIdentity {
  std::string name_space;
  std::uint64_t epoch = 0;
  std::optional<SecretKey> key;
  std::optional<ProvenanceSource> provenance;

  /// Returns the identity with the given defaults; options of the command line override them.
  static Result<BundleIdentity> of(const Arguments& arguments, std::string name_space, std::uint64_t epoch);
  BundleWriter::Options options() const { return {name_space, epoch, provenance}; }
  std::optional<KeyId> signer() const;
};

/// The result of writing a bundle.
struct WrittenBundle {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;
  std::size_t artifacts = 0;
  std::string name_space;
  std::uint64_t epoch = 0;
  std::optional<KeyId> signer;

  /// Returns a one-line summary. For an unsigned bundle it also states who can use it.
  std::string text() const;
};

/// Rejects an output path that cannot be written, before anything is compiled.
Status check_output(const std::string& path);
/// Writes the bundle atomically.
Result<WrittenBundle> write_bundle(const BundleWriter& writer, const BundleIdentity& speaker, const std::string& path);

}  // namespace kiln::cli
