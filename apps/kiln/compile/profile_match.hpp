// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/compile/unit_arguments.hpp"
#include "apps/kiln/output/console.hpp"
#include "bundle/profile.hpp"
#include "session/components.hpp"
#include "session/config/manifest.hpp"

namespace kiln::cli {

/// The requests of a profile that match units of a manifest.
struct ProfileMatch {
  struct Unmatched {
    ProfileEntry asked;
    std::string reason;
  };
  std::vector<Job> jobs;  ///< without duplicates
  std::vector<Unmatched> unmatched;
};

/// Reads a profile. Warns if it has lines that this version does not understand.
Result<Profile> load_profile(const std::string& path, Console& console);

/// Selects the units of a manifest that a profile requests. Uses only keys and targets of the profile, and names for
/// messages. A key either matches a unit of the manifest or is ignored, so that an untrusted profile can select units
/// but not add any. `instead` replaces the targets of the profile; empty means the targets of the profile.
Result<ProfileMatch> match_profile(const Profile& profile, const Manifest& manifest, const std::vector<Target>& instead,
                                   Components& components);

/// Prints a warning for each request, which starts with `what`: "not built".
void print_unmatched(const std::vector<ProfileMatch::Unmatched>& unmatched, const char* what, Console& console);

}  // namespace kiln::cli
