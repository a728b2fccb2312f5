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

/// What went into one build of a unit, by digest where it is large: enough to say what differs from another.
struct Build {
  RequestKey request;
  Key key;
  Digest source{};
  Digest preamble{};  ///< of the empty text where there is none
  std::vector<std::string> options;
  std::vector<std::string> entries;
  std::vector<std::pair<std::string, Digest>> headers;  ///< from memory: name and content
  std::vector<std::string> include_roots;               ///< their paths
  std::string working_directory;
  Target target;
  CompilerIdentity compiler;
  std::chrono::nanoseconds built_at{};  ///< wall time
  double cost_ms = 0;

  static Build of(const Recipe& recipe, const Key& key, double cost_ms, std::chrono::nanoseconds now);
};

/// The builds of one unit, newest first; docs/history-format.md has the grammar.
struct UnitHistory {
  static constexpr std::size_t kMostBuilds = 32;

  std::string kind;
  std::string name;
  std::vector<Build> builds;
};

std::string encode(const UnitHistory& history);
Result<UnitHistory> decode_history(std::string_view bytes);

}  // namespace kiln
