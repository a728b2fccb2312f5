// SPDX-License-Identifier: Apache-2.0
#include "remote/s3/xml_reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>

namespace kiln {
namespace {

constexpr std::string_view kXmlSpaces = " \t\r\n";

bool is_name(std::string_view text) {
  const auto valid = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' || c == '_' ||
           c == '-' || c == '.';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), valid);
}

/// Returns the character of `amp`, `#34` or `#x22`, the text of a reference.
std::optional<char> referenced(std::string_view name) {
  constexpr struct {
    std::string_view name;
    char value;
  } kNamed[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
  for (const auto& one : kNamed) {
    if (one.name == name) return one.value;
  }
  if (!name.starts_with('#')) return std::nullopt;
  const bool is_hex = name.starts_with("#x");
  name.remove_prefix(is_hex ? 2 : 1);
  unsigned value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value, is_hex ? 16 : 10);
  if (error != std::errc() || end != name.data() + name.size() || value == 0 || value > 127) return std::nullopt;
  return static_cast<char>(value);
}

/// Returns the text with its references replaced, or nothing if one is invalid.
std::optional<std::string> decode(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t mark = std::min(text.find('&', at), text.size());
    out += text.substr(at, mark - at);
    if (mark == text.size()) break;
    const std::size_t end = text.find(';', mark);
    if (end == std::string_view::npos) return std::nullopt;
    const auto value = referenced(text.substr(mark + 1, end - mark - 1));
    if (!value) return std::nullopt;
    out += *value;
    at = end + 1;
  }
  return out;
}

/// A parser of one text. Not thread-safe.
class XmlParser {
 public:
  XmlParser(std::string_view text, XmlHandler& handler) : rest_(text), handler_(handler) {}

  bool parse() {
    skip_spaces();
    if (rest_.starts_with("<?xml ")) {
      const std::size_t end = rest_.find("?>");
      if (end == std::string_view::npos) return false;
      rest_.remove_prefix(end + 2);
      skip_spaces();
    }
    if (!rest_.starts_with('<')) return false;
    do {
      const std::size_t tag = rest_.find('<');
      if (tag == std::string_view::npos) return false;
      const std::string_view text = rest_.substr(0, tag);
      rest_.remove_prefix(tag + 1);
      if (!(rest_.starts_with('/') ? read_end_tag(text) : read_start_tag())) return false;
    } while (depth_ > 0);
    skip_spaces();
    return rest_.empty();
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(kXmlSpaces), rest_.size())); }

  bool read_start_tag() {
    // A quoted value of an attribute may contain `>`.
    std::size_t end = 0;
    char quote = 0;
    for (; end < rest_.size() && (quote != 0 || rest_[end] != '>'); ++end) {
      const char c = rest_[end];
      if (quote == 0 && (c == '"' || c == '\'')) {
        quote = c;
      } else if (c == quote) {
        quote = 0;
      }
    }
    if (end >= rest_.size()) return false;
    std::string_view tag = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    const bool is_empty = tag.ends_with('/');
    if (is_empty) tag.remove_suffix(1);
    const std::string_view name = tag.substr(0, tag.find_first_of(kXmlSpaces));
    if (!is_name(name) || depth_ == kMaxXmlDepth || !handler_.open(name, depth_)) return false;
    if (is_empty) return handler_.close(name, depth_, {});
    names_[depth_++] = name;
    return true;
  }

  bool read_end_tag(std::string_view text) {
    const std::size_t end = rest_.find('>');
    if (end == std::string_view::npos || depth_ == 0) return false;
    std::string_view name = rest_.substr(1, end - 1);
    while (!name.empty() && kXmlSpaces.find(name.back()) != std::string_view::npos) name.remove_suffix(1);
    rest_.remove_prefix(end + 1);
    if (name != names_[--depth_]) return false;
    const auto decoded = decode(text);
    return decoded && handler_.close(name, depth_, *decoded);
  }

  std::string_view rest_;
  XmlHandler& handler_;
  std::array<std::string_view, kMaxXmlDepth> names_;
  std::size_t depth_ = 0;
};

}  // namespace

bool parse_xml(std::string_view text, XmlHandler& handler) { return XmlParser(text, handler).parse(); }

}  // namespace kiln
