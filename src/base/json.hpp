#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <kiln/result.hpp>

// The one way to read JSON and to write it. For sources that have some to read or write: it takes a second to compile.
namespace kiln {

/// Written in the order in which it was made. Not for reading: each member is compared with all before it.
using Json = nlohmann::ordered_json;

/// With members sorted by name, so that equal values have equal text. What is read is of this kind.
using SortedJson = nlohmann::json;

/// Takes text piece by piece, where a tree of it would be too large.
using JsonReader = nlohmann::json_sax<SortedJson>;

/// What somebody else wrote. Text whose brackets lie deeper in one another than `deepest` is refused before it is
/// parsed: four megabytes of brackets take the parser seconds. The error reads on from the text's name: "is no JSON at
/// byte 7".
Result<SortedJson> parse_json(std::string_view text, std::size_t deepest);

/// Likewise, piece by piece: how deep it may lie is the reader's to say. False where it is no JSON or the reader said
/// so.
bool parse_json(std::string_view text, JsonReader& reader);

/// A member of an object; null where there is none, or no object.
const SortedJson& member_of(const SortedJson& object, const char* name);

/// On one line, or with as many spaces as that at each level. Names and logs may hold any bytes: what is no UTF-8 is
/// replaced.
std::string json_text(const Json& value, int indent = -1);
std::string json_text(const SortedJson& value, int indent = -1);

}  // namespace kiln
