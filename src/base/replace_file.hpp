#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "base/files.hpp"

namespace kiln {

/// Removes a regular file that nobody has written to for so long, such as a process leaves that was killed over it.
void remove_abandoned(int directory, const std::string& name, std::chrono::nanoseconds age);

/// Makes `bytes` appear under this path in one step, by way of a file beside it, `.<name>.<16 digits>`. What killed
/// processes left there of that kind an hour ago or longer is removed.
Status replace_file(const std::string& path, std::string_view bytes, Durability durability,
                    std::optional<mode_t> mode = std::nullopt);

}  // namespace kiln
