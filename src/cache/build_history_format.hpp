// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>
#include <kiln/target.hpp>

#include "core/recipe.hpp"

namespace kiln {

/// The inputs of one build of a unit, as digests if they are large. They are sufficient to compare two builds.
struct Build {
  RequestKey request;
  ArtifactKey key;
  Digest source{};
  Digest preamble{};  ///< digest of the empty string if there is no preamble
  std::vector<std::string> options;
  std::vector<std::string> entries;
  std::vector<std::pair<std::string, Digest>> headers;  ///< in-memory headers: name and content
  std::vector<std::string> include_roots;               ///< paths
  std::string working_directory;
  Target target;
  CompilerIdentity compiler;
  std::chrono::nanoseconds built_at{};  ///< wall time
  double cost_ms = 0;

  static Build of(const Recipe& recipe, const ArtifactKey& key, double cost_ms, std::chrono::nanoseconds now);
};

/// The builds of one unit, newest first (docs/internals/formats/cache-folder.md).
struct UnitHistory {
  static constexpr std::size_t kMaxBuilds = 32;

  std::string kind;
  std::string name;
  std::vector<Build> builds;
};

std::string encode(const UnitHistory& history);
Result<UnitHistory> decode_history(std::string_view bytes);

}  // namespace kiln
