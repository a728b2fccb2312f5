// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/jit/tiers.hpp"
#include "base/clock.hpp"

namespace kiln::jit {

/// The limits of a fill or a publication. When one is reached, the rest is left out and counted.
struct Limits {
  std::uint64_t entry_bytes = std::uint64_t{256} << 20;
  std::uint64_t system_bytes = std::uint64_t{4} << 30;
  std::uint64_t total_bytes = std::uint64_t{8} << 30;
  std::chrono::milliseconds time{10'000};
};

/// What happened to one entry of a list.
struct FillOutcome {
  enum class State : unsigned char {
    Placed,    ///< this call placed it
    Present,   ///< it existed already and was not changed
    Missing,   ///< no tier has the packed entry
    Rejected,  ///< the entry violates the rule or is corrupt
    LeftOut    ///< a limit was reached
  };
  State state = State::Missing;
  std::string path;
  std::string source;  ///< of the list
  std::string reason;  ///< for Missing, Rejected and LeftOut
  std::uint64_t bytes = 0;
};

/// The result of filling one system's root.
struct FillReport {
  std::string system;
  std::string root;
  std::string error;  ///< why nothing was placed; empty if the fill ran
  std::vector<FillOutcome> entries;
  std::vector<std::string> problems;  ///< lists that could not be used
  std::vector<std::string>
      conflicts;            ///< paths for which two lists name different entries; the first one that a tier has applies
  std::uint64_t bytes = 0;  ///< placed

  std::size_t count(FillOutcome::State state) const;
};

/// Places the entries of a system below its root. Unpacks beside the target and renames, never overwrites, follows no
/// link, and leaves no partial entry when it is killed. `used` is the number of bytes placed for other systems.
FillReport fill(const JitTiers& tiers, const DetectedSystem& system, const std::string& root, const Limits& limits,
                const Deadline& deadline, std::uint64_t used = 0);

}  // namespace kiln::jit
