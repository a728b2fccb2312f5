// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <kiln/result.hpp>

#include "apps/kiln/jit/fill.hpp"
#include "apps/kiln/jit/tiers.hpp"

namespace kiln::jit {

/// What happened to one entry of a root.
struct PublishOutcome {
  enum class State : unsigned char {
    Published,
    Known,       ///< the list has this entry already
    Incomplete,  ///< a required file is missing
    Changing,    ///< a file changed while it was read
    Refused      ///< a link, a file of another user, the path of the root, or too large
  };
  State state = State::Published;
  std::string path;
  std::string reason;
  std::uint64_t bytes = 0;
};

/// The result of publishing one system's root.
struct PublishReport {
  std::string system;
  std::string root;
  std::string error;  ///< why nothing was published, or not to the remote store; empty if neither
  std::vector<PublishOutcome> entries;

  std::size_t count(PublishOutcome::State state) const;
};

/// Packs the entries of a system's root and stores them in kiln's tiers, then adds them to the lists. Takes only
/// regular files of this user that do not change in the meantime and were written at least `settle` ago.
PublishReport publish(const JitTiers& tiers, const DetectedSystem& system, const std::string& root,
                      const Limits& limits, const Deadline& deadline, std::chrono::nanoseconds settle = {});

}  // namespace kiln::jit
