#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "remote/depot.hpp"

namespace kiln {

/// What nginx's `autoindex_format json` says of a folder; nothing for any other text. Files whose names are no digests
/// are left out.
std::optional<std::vector<Depot::Listed>> parse_listing(std::string_view text);

/// A moment as HTTP writes it, `Sun, 15 Nov 2026 21:53:31 GMT`, as wall time; zero for any other text.
std::chrono::nanoseconds parse_http_date(std::string_view text);

}  // namespace kiln
