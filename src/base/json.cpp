#include "base/json.hpp"

#include "base/error.hpp"

namespace kiln {
namespace {

bool nests_deeper(std::string_view text, std::size_t limit) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted && c == '\\') ++at;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if ((c == '{' || c == '[') && ++depth > limit) return true;
    if ((c == '}' || c == ']') && depth > 0) --depth;
  }
  return false;
}

}  // namespace

Result<SortedJson> parse_json(std::string_view text, std::size_t deepest) {
  if (nests_deeper(text, deepest)) return failure(Code::Corrupt, "is nested too deeply");
  try {
    return SortedJson::parse(text);
  } catch (const SortedJson::parse_error& error) {
    return failure(Code::Corrupt, "is no JSON at byte " + std::to_string(error.byte));
  } catch (const SortedJson::out_of_range&) {  // a number that no double holds
    return failure(Code::Corrupt, "has a number that is too large");
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
