#pragma once

#include <optional>
#include <vector>

#include <kiln/result.hpp>

#include "store/collector.hpp"

namespace kiln {

/// What `scan_cache` finds, and whether that is all.
struct CacheScan {
  std::vector<CachedFile> files;
  std::optional<Error> unread;  ///< why there may be more
};
CacheScan scan_whole_cache(const CacheDirectory::Folder& folder);

}  // namespace kiln
