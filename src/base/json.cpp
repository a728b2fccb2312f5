// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include "base/error.hpp"

namespace kiln {
namespace {

// Checks brackets and commas only, so that rejected text causes no allocation.
Status check_limits(std::string_view text, const JsonLimits& limits) {
  std::size_t depth = 0;
  std::size_t values = 1;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') ++at;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    const bool opens = c == '{' || c == '[';
    if (opens && ++depth > limits.depth) return make_error(Code::Unsupported, "is nested too deeply");
    if ((c == '}' || c == ']') && depth > 0) --depth;
    if ((opens || c == ',') && ++values > limits.values) {
      return make_error(Code::Unsupported, "has more than " + std::to_string(limits.values) + " values");
    }
  }
  return {};
}

}  // namespace

Result<SortedJson> parse_json(std::string_view text, const JsonLimits& limits) {
  if (Status within = check_limits(text, limits); !within) return std::move(within).error();
  try {
    return SortedJson::parse(text);
  } catch (const SortedJson::parse_error& error) {
    return make_error(Code::Corrupt, "is not valid JSON at byte " + std::to_string(error.byte));
  } catch (const SortedJson::out_of_range&) {  // a number outside the range of double
    return make_error(Code::Corrupt, "contains a number that is out of range");
  }
}

bool parse_json(std::string_view text, JsonReader& reader) {
  return SortedJson::sax_parse(text.begin(), text.end(), &reader);
}

const SortedJson& member_of(const SortedJson& object, const char* name) {
  static const SortedJson kNothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? kNothing : *found;
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_text(const SortedJson& value, int indent) {
  return value.dump(indent, ' ', false, SortedJson::error_handler_t::replace);
}

}  // namespace kiln
