#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "base/files.hpp"

namespace kiln {

/// Makes `bytes` appear under this path in one step, by way of a file beside it, `.<name>.<16 digits>`. What killed
/// processes left there of that kind an hour ago or longer is removed.
Status replace_file(const std::string& path, std::string_view bytes, Durability durability,
                    std::optional<mode_t> mode = std::nullopt);

}  // namespace kiln
