// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "remote/object_store.hpp"

namespace kiln {

/// A page of a listing (ListObjectsV2).
struct S3ListPage {
  std::vector<ObjectStore::ObjectInfo> objects;
  std::string last_key;       ///< the greatest key of the page, also if it is not an object of kiln's
  bool is_truncated = false;  ///< the listing continues after the last key
};

/// Parses a page. Skips objects whose keys are not `prefix` and a digest. Returns nothing for other text.
std::optional<S3ListPage> parse_s3_listing(std::string_view text, std::string_view prefix);

/// Converts `2026-11-15T21:53:31Z`, with or without a fraction of a second, to wall time. Returns 0 for other text.
std::chrono::nanoseconds parse_utc(std::string_view text);

}  // namespace kiln
