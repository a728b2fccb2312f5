// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/kiln/compile/profile_match.hpp"
#include "apps/kiln/output/render_json.hpp"

namespace kiln::cli {

/// The result of `kiln warm`.
struct WarmReport {
  std::string from;
  const char* kind = "";                 ///< manifest, profile, bundle
  std::vector<CompileOutcome> outcomes;  ///< empty for a bundle
  std::vector<ProfileMatch::Unmatched> unmatched;
  std::uint64_t stored = 0;           ///< artifacts of a bundle that were new on this host
  std::uint64_t already_cached = 0;   ///< artifacts of a bundle that were already cached
  std::uint64_t not_for_devices = 0;  ///< units and artifacts that no device of this host can use
  std::uint64_t published = 0;        ///< artifacts uploaded to the remote store
  std::uint64_t dropped = 0;          ///< artifacts that could not be uploaded
  /// Why something that is configured, a bundle or the fleet, is not effective, with the next step.
  std::vector<std::string> problems;
  double seconds = 0;

  /// Returns a problem if everything was left out because of the devices of this host; otherwise an empty string.
  std::string device_problem(const std::string& devices) const;
  std::uint64_t failed() const;
  /// Returns the number of artifacts from this origin.
  std::uint64_t from_origin(Origin origin) const;
  /// The cache tiers in the order of the output.
  static constexpr std::array<Origin, 4> kTiers = {Origin::Memory, Origin::Bundle, Origin::Disk, Origin::Remote};
  /// `84 of 84 in 3.21 s: 60 from disk, 20 from remote, 4 compiled; 4 published`
  std::string text() const;
};

/// Adds the artifacts of a bundle to the cache of fetched entries.
int warm_bundle(const Arguments& arguments, Console& console);

std::string warm_json(const WarmReport& report);

}  // namespace kiln::cli
