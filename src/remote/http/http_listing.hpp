// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "remote/object_store.hpp"

namespace kiln {

/// Parses a directory listing of nginx (`autoindex_format json`). Returns nothing for other text. Skips files whose
/// names are not digests.
std::optional<std::vector<ObjectStore::ObjectInfo>> parse_listing(std::string_view text);

/// Converts an HTTP date, `Sun, 15 Nov 2026 21:53:31 GMT`, to wall time. Returns 0 for other text.
std::chrono::nanoseconds parse_http_date(std::string_view text);

}  // namespace kiln
