// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kiln {

/// Sizes of the parts of the usage journal, in bytes (docs/internals/formats/cache-folder.md).
inline constexpr std::size_t kUsageHead = 32;
inline constexpr std::size_t kUsageRecord = 16;

std::string encode_usage_head(std::chrono::nanoseconds scanned_at);
std::string encode_usage_record(std::int64_t bytes);

/// Returns the wall time of the last scan, or nothing if the file is not a journal.
std::optional<std::chrono::nanoseconds> decode_usage_head(std::span<const std::uint8_t> file);

/// Returns the sum of all complete, valid records. A record that a crash or a network file system corrupted counts as
/// 0.
std::int64_t sum_of_usage(std::span<const std::uint8_t> records);

}  // namespace kiln
