#pragma once

#include <string>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "store/cache_directory.hpp"
#include "store/history_format.hpp"
#include "store/usage_journal.hpp"

namespace kiln {

/// What was built lately, per unit, so that a miss can be explained by what changed since. It decides nothing: lost or
/// damaged, it is empty. Any thread; two processes that record at once may lose one of the two builds.
class BuildHistory {
 public:
  BuildHistory(CacheDirectory& directory, UsageJournal& journal) : directory_(directory), journal_(journal) {}

  /// Puts a build first among those of its unit.
  Status record(const Recipe& recipe, const Key& key, double cost_ms);
  /// The builds of a unit, newest first, at most UnitHistory::kMostBuilds.
  Result<std::vector<Build>> builds(const std::string& kind, const std::string& name);

 private:
  CacheDirectory& directory_;
  UsageJournal& journal_;
};

}  // namespace kiln
