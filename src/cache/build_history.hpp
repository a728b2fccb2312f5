// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kiln/key.hpp>
#include <kiln/result.hpp>

#include "cache/build_history_format.hpp"
#include "cache/cache_directory.hpp"
#include "cache/usage_journal.hpp"

namespace kiln {

/// The recent builds of each unit, used to explain a cache miss by what changed. It affects no result: if it is lost or
/// corrupt, it is empty. If two processes record at the same time, one of the builds may be lost. Thread-safe.
class BuildHistory {
 public:
  BuildHistory(CacheDirectory& directory, UsageJournal& journal) : directory_(directory), journal_(journal) {}

  /// Records a build as the newest of its unit.
  Status record(const Recipe& recipe, const ArtifactKey& key, double cost_ms);
  /// Returns the builds of a unit, newest first, at most `UnitHistory::kMaxBuilds`.
  Result<std::vector<Build>> builds(const std::string& kind, const std::string& name);

 private:
  CacheDirectory& directory_;
  UsageJournal& journal_;
};

}  // namespace kiln
