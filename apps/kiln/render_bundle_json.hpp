#pragma once

#include <string>
#include <vector>

#include "apps/kiln/bundle_diff.hpp"
#include "apps/kiln/bundle_files.hpp"
#include "apps/kiln/profile_match.hpp"
#include "apps/kiln/render_json.hpp"

namespace kiln::cli {

struct VerifiedBundle {
  std::string path;
  Result<OpenBundle> opened;
  Status whole;
};

/// What bundles have for one thing that was asked for.
struct ProfileAnswer {
  Asked asked;
  std::string bundle;          ///< that serves it; empty where none does
  std::optional<Target> made;  ///< what for the artifact was made that serves it
  std::string text;            ///< how it is served, or what is lacking, in words
};

// The JSON of `kiln bundle` and of `kiln explain --profile`, under the rules of render_json.hpp.
std::string bundle_create_json(const WrittenBundle& written, const std::vector<Job>& jobs,
                               const std::vector<CompileOutcome>& outcomes,
                               const std::vector<ProfileMatch::Unmatched>& unmatched);
std::string bundle_ls_json(const OpenBundle& open, const BundleDescription& description);
std::string bundle_verify_json(const std::vector<VerifiedBundle>& all);
std::string bundle_artifact_json(const BundleDescription::Artifact& artifact, const std::string& output);
std::string bundle_diff_json(const OpenBundle& then, const OpenBundle& now, const BundleDiff& diff);
std::string bundle_merge_json(const WrittenBundle& written, const std::vector<Shadowed>& shadowed);
std::string bundle_layout_json(const OpenBundle& open, const std::string& folder, const std::string& reference,
                               std::size_t layers);
std::string bundle_units_json(const std::string& output, bool written);
std::string explain_profile_json(const Profile& profile, const std::vector<ProfileAnswer>& answers);

}  // namespace kiln::cli
