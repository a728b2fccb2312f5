// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <kiln/artifact.hpp>
#include <kiln/key.hpp>
#include <kiln/target.hpp>

namespace kiln {

/// One input that differs from that of an earlier build.
struct InputDifference {
  std::string input;   ///< source, header, option, entry, compiler, target, environment, …
  std::string name;    ///< name of the input: a path, an option
  std::string before;  ///< digest, version or value before; empty if it did not exist
  std::string after;   ///< digest, version or value now; empty if it does not exist
};

/// The reason why a unit is a cache hit or a miss. See `Session::explain`.
struct Explanation {
  /// An earlier build of the unit.
  struct EarlierBuild {
    ArtifactKey key;
    Target target;
    std::string compiler;                            ///< name and version
    std::chrono::system_clock::time_point built_at;  ///< end of the build
    double cost_ms = 0;                              ///< compile time in milliseconds
  };

  bool hit = false;
  std::optional<ResolvedArtifact> artifact;  ///< set on a hit
  RequestKey request;
  std::optional<EarlierBuild> nearest;       ///< the recorded build with the fewest differences; set on a miss
  std::vector<InputDifference> differences;  ///< differences from `nearest`
  std::string summary;                       ///< one sentence
};

}  // namespace kiln
