#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/kiln/profile_match.hpp"
#include "apps/kiln/render_json.hpp"

namespace kiln::cli {

/// What `kiln warm` came to.
struct WarmReport {
  std::string from;
  const char* kind = "";                 ///< manifest, profile, bundle
  std::vector<CompileOutcome> outcomes;  ///< not of a bundle
  std::vector<ProfileMatch::Unmatched> unmatched;
  std::uint64_t kept = 0;       ///< of a bundle: artifacts that this host had not
  std::uint64_t there = 0;      ///< and those that it had
  std::uint64_t published = 0;  ///< sent to the remote store
  std::uint64_t dropped = 0;    ///< and those that were not
  double seconds = 0;

  std::uint64_t failed() const;
  /// How many came from there.
  std::uint64_t from_origin(Origin origin) const;
  /// In the order in which they are told.
  static constexpr std::array<Origin, 4> kTiers = {Origin::Memory, Origin::Bundle, Origin::Disk, Origin::Remote};
  /// `84 of 84 in 3.21 s: 60 from disk, 20 from remote, 4 compiled; 4 published`
  std::string text() const;
};

/// Keeps a bundle's artifacts where this host keeps what it fetched.
int warm_bundle(const Arguments& arguments, Console& console);

std::string warm_json(const WarmReport& report);

}  // namespace kiln::cli
