#pragma once

#include <optional>
#include <string>
#include <vector>

#include "warm/resolver.hpp"

namespace kiln {

/// One input that is not what it was.
struct Difference {
  std::string input;  ///< source, header, option, entry, compiler, target, environment, …
  std::string what;   ///< which one: a path, an option
  std::string then;   ///< a digest, a version, a value; empty where it did not exist
  std::string now;    ///< likewise
};

/// Why a recipe hits or misses.
struct Explanation {
  bool hit = false;
  std::optional<Answer> answer;  ///< of a hit
  RequestKey request;
  /// The earlier build of this unit with the fewest differences, if any is known.
  std::optional<Build> nearest;
  std::vector<Difference> differences;
  std::string summary;  ///< one sentence
};

/// Why a recipe that was looked for in vain is a miss: its nearest earlier build that the history knows, and what is
/// different since. It reads the history and, where files are concerned, the files; it tells nobody.
Explanation explain_miss(const Recipe& recipe, const Resolver::Parts& parts);

/// Looks, and on a miss compares with every earlier build of the unit (by kind and name) that the history knows.
Explanation explain(const Recipe& recipe, const Resolver::Parts& parts);

}  // namespace kiln
