// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/kiln/bundle/bundle_diff.hpp"
#include "apps/kiln/bundle/bundle_files.hpp"
#include "apps/kiln/compile/profile_match.hpp"
#include "apps/kiln/output/render_json.hpp"
#include "bundle/provenance.hpp"

namespace kiln::cli {

/// A part of a bundle that was written as a bundle of its own.
struct WrittenPart {
  std::string architecture;  ///< name of the part: `sm_90`
  WrittenBundle bundle;      ///< `path` is the name of the image in an image layout
  std::size_t layers = 0;    ///< 0 for a file
};

/// A part that was copied from a registry or a layout.
struct PulledPart {
  std::string architecture;
  std::string image;
  std::string directory;
  std::uint64_t bytes = 0;  ///< size of the layout
};

struct VerifiedBundle {
  std::string path;
  Result<OpenBundle> opened;
  std::optional<Status> intact;  ///< empty if the contents were not read because the bundle is not trusted
  std::optional<Provenance> provenance;
  std::vector<BundleCompiler> compilers;  ///< empty without provenance
};

/// The result of looking up one request of a profile in the bundles.
struct ProfileResult {
  ProfileEntry asked;
  std::string bundle;          ///< bundle that serves the request; empty if none does
  std::optional<Target> made;  ///< target for which the artifact was built
  std::string text;            ///< how it is served or what is missing, human-readable
};

// The JSON of `kiln bundle` and of `kiln explain --profile`. The rules of render_json.hpp apply.
std::string bundle_create_json(const WrittenBundle& written, const std::vector<Job>& jobs,
                               const std::vector<CompileOutcome>& outcomes,
                               const std::vector<ProfileMatch::Unmatched>& unmatched);
std::string bundle_ls_json(const OpenBundle& open, const BundleDescription& description);
std::string bundle_verify_json(const std::vector<VerifiedBundle>& all);
std::string bundle_artifact_json(const BundleDescription::Artifact& artifact, const std::string& output);
std::string bundle_diff_json(const OpenBundle& then, const OpenBundle& now, const BundleDiff& diff);
std::string bundle_merge_json(const WrittenBundle& written, const std::vector<Shadowed>& shadowed);
std::string bundle_oci_json(const OpenBundle& open, const std::string& directory, const std::string& reference,
                            std::size_t layers);
/// `output` is the directory of the parts or of the layout.
std::string bundle_parts_json(const OpenBundle& open, const std::string& output, const std::vector<WrittenPart>& parts);
std::string bundle_pull_json(const std::vector<PulledPart>& parts);
std::string bundle_header_json(const std::string& output, bool written);
std::string explain_profile_json(const Profile& profile, const std::vector<ProfileResult>& answers);

}  // namespace kiln::cli
