// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include <kiln/result.hpp>

#include "base/files/files.hpp"

namespace kiln {

/// Removes a regular file that has not been written to for `age`, for example one that a killed process left.
void remove_stale_file(int directory, const std::string& name, std::chrono::nanoseconds age);

/// Returns a name for a temporary file that will replace `name`: `.<name>.<16 digits>`.
std::string temporary_name(const std::string& name);
/// Removes such files that killed processes left an hour ago or earlier.
void remove_stale_temporaries(int directory, const std::string& name);

/// Writes `bytes` to `path` atomically, through a temporary file in the same directory, and removes what killed
/// processes left.
Status replace_file(const std::string& path, std::string_view bytes, Durability durability,
                    std::optional<mode_t> mode = std::nullopt);

}  // namespace kiln
