// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <kiln/result.hpp>

// The only place that reads or writes JSON. Include it only in sources that do: it takes a second to compile.
namespace kiln {

/// A JSON value that is written in insertion order. Not for reading: each new member is compared with all earlier
/// members.
using Json = nlohmann::ordered_json;

/// A JSON value with members sorted by name, so that equal values have equal text. `parse_json` returns this type.
using SortedJson = nlohmann::json;

/// A streaming reader, for input whose tree would be too large.
using JsonReader = nlohmann::json_sax<SortedJson>;

/// Limits for untrusted text. A tree takes up to 200 bytes of memory for each value, however short its text is.
struct JsonLimits {
  std::size_t depth;   ///< nesting of brackets
  std::size_t values;  ///< total number, including objects and arrays
};

/// Parses untrusted text. Text that exceeds the limits is rejected before parsing with Code::Unsupported; the caller
/// limits the size of the text. The error message continues after the name of the text: "is not valid JSON at byte 7".
Result<SortedJson> parse_json(std::string_view text, const JsonLimits& limits);

/// Parses text with a streaming reader, which must limit the depth itself. Returns false if the text is not JSON or the
/// reader stopped.
bool parse_json(std::string_view text, JsonReader& reader);

/// Returns a member of an object; null if there is no such member or `object` is not an object.
const SortedJson& member_of(const SortedJson& object, const char* name);

/// Formats a value on one line, or with `indent` spaces per level. Names and logs can hold any bytes: invalid UTF-8 is
/// replaced.
std::string json_text(const Json& value, int indent = -1);
std::string json_text(const SortedJson& value, int indent = -1);

}  // namespace kiln
