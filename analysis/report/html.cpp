#include "analysis/report/html.hpp"

#include <algorithm>
#include <cstdio>

namespace kiln::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Returns true for U+202A to U+202E and U+2066 to U+2069, which change the direction of the following text.
bool turns_direction(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xE2') return false;
  const auto third = static_cast<unsigned char>(text[2]);
  return (text[1] == '\x80' && third >= 0xAA && third <= 0xAE) || (text[1] == '\x81' && third >= 0xA6 && third <= 0xA9);
}

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F; }

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (turns_direction(text.substr(i))) {
      out += kReplacement;
      i += 2;
      continue;
    }
    switch (const char c = text[i]) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: is_control(c) ? out += kReplacement : out += c;
    }
  }
  return out;
}

std::string json_in_html(const std::string& json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    switch (c) {  // in JSON these characters occur only in strings
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

std::string span_style(double start, double length, double whole) {
  char text[64];
  const double scale = whole > 0 ? 100 / whole : 0;
  const double left = std::clamp(start * scale, 0.0, 100.0);
  std::snprintf(text, sizeof text, "left:%.3f%%;width:%.3f%%", left, std::clamp(length * scale, 0.0, 100 - left));
  return text;
}

Html& Html::open(const char* tag, Attributes attributes) {
  out_ += '<';
  out_ += tag;
  for (const auto& [name, value] : attributes) {
    if (value.empty()) continue;
    out_ += ' ';
    out_ += name;
    out_ += "=\"" + escaped(value) + '"';
  }
  out_ += '>';
  return *this;
}

Html& Html::close(const char* tag) {
  out_ += "</";
  out_ += tag;
  out_ += ">\n";
  return *this;
}

Html& Html::text(std::string_view text) {
  out_ += escaped(text);
  return *this;
}

Html& Html::put(const char* tag, Attributes attributes, std::string_view text) {
  return open(tag, attributes).text(text).close(tag);
}

}  // namespace kiln::report
