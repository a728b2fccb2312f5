#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/resolver.hpp"

namespace kiln {

/// One input that differs.
struct Difference {
  std::string input;   ///< source, header, option, entry, compiler, target, environment, …
  std::string name;    ///< name of the input: a path, an option
  std::string before;  ///< digest, version or value before; empty if it did not exist
  std::string after;   ///< digest, version or value now; empty if it does not exist
};

/// The reason why a recipe hits or misses.
struct Explanation {
  bool hit = false;
  std::optional<ResolveResult> answer;  ///< set on a hit
  RequestKey request;
  /// The earlier build of this unit with the fewest differences, if one is recorded.
  std::optional<Build> nearest;
  std::vector<Difference> differences;
  std::string summary;  ///< one sentence
};

/// Explains why a recipe is a miss: finds the nearest earlier build in the history and what differs from it. It reads
/// the history and, if files differ, the files. It emits no event.
Explanation explain_miss(const Recipe& recipe, const Resolver::Params& params);

/// Looks up the recipe and, on a miss, compares it with every earlier build of the unit (by kind and name) in the
/// history.
Explanation explain(const Recipe& recipe, const Resolver::Params& params);

}  // namespace kiln
