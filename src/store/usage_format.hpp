#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace kiln {

/// The parts of the usage journal; docs/usage-format.md has the grammar.
inline constexpr std::size_t kUsageHead = 32;
inline constexpr std::size_t kUsageRecord = 16;

std::string encode_usage_head(std::chrono::nanoseconds scanned_at);
std::string encode_usage_record(std::int64_t bytes);

/// When the last scan was; nothing for what is no journal.
std::optional<std::chrono::nanoseconds> decode_usage_head(std::span<const std::uint8_t> file);

/// The sum of whole, sound records; one that a crash or a network file system spoilt counts nothing.
std::int64_t sum_of_usage(std::span<const std::uint8_t> records);

}  // namespace kiln
