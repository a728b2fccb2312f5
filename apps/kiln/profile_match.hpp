#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/console.hpp"
#include "apps/kiln/unit_arguments.hpp"
#include "bundle/profile.hpp"
#include "session/manifest.hpp"
#include "session/toolbox.hpp"

namespace kiln::cli {

/// What of a profile a manifest's own units answer.
struct ProfileMatch {
  struct Unmatched {
    Asked asked;
    std::string why;
  };
  std::vector<Job> jobs;  ///< each once
  std::vector<Unmatched> unmatched;
};

/// Reads a profile; lines of it that say nothing to this kiln are a warning.
Result<Profile> load_profile(const std::string& path, Console& console);

/// Nothing but keys and targets is taken from the profile, and names for messages: a key is one of the manifest's units
/// or nothing, so that a profile from anywhere can choose among them and add nothing. `instead` are targets to build
/// for in place of those that were seen; empty: those.
Result<ProfileMatch> match_profile(const Profile& profile, const Manifest& manifest, const std::vector<Target>& instead,
                                   Toolbox& toolbox);

/// A warning for each, which begins with `what`: "not built".
void print_unmatched(const std::vector<ProfileMatch::Unmatched>& unmatched, const char* what, Console& console);

}  // namespace kiln::cli
