// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln {

/// Returns the parts between separators, including empty ones, but none after a trailing separator. The parts are views
/// of `text`.
std::vector<std::string_view> split(std::string_view text, char separator);
/// Not allowed: the parts would be views of a string that does not exist any more.
template <std::same_as<std::string> Temporary>
std::vector<std::string_view> split(Temporary&& text, char separator) = delete;

/// Returns the first line that is not empty, or nothing if there is none.
std::string_view first_line(std::string_view text);

/// Returns "invalid value '<text>'; use <valid>" for a message. A long text is shortened.
std::string invalid_value(std::string_view text, const char* valid);

/// The values that parse_boolean() accepts, for messages.
constexpr const char* kBooleanValues = "1, true, yes, on, 0, false, no or off";
/// Parses a boolean: `1`, `true`, `yes`, `on` or `0`, `false`, `no`, `off`, in upper or lower case. This is the only
/// function that parses booleans of variables and settings. Returns no value for any other text.
std::optional<bool> parse_boolean(std::string_view text);

/// The values that parse_size() accepts, for messages.
constexpr const char* kSizeValues = "a size above zero such as 20G or 512M";
/// Parses a size in bytes: `20G`, `512M`, `1048576`. Suffixes are powers of 1024.
Result<std::uint64_t> parse_size(std::string_view text);

}  // namespace kiln
