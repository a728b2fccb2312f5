#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::report {

/// Escapes text for an HTML element or a quoted attribute. Names in traces are untrusted: they cannot create tags, and
/// characters that change the text direction are replaced.
std::string escaped(std::string_view text);

/// Returns JSON that is safe in a <script> element: it contains no `<`.
std::string json_in_html(const std::string& json);

/// Returns the CSS position of a span on a line: "left:12.5%;width:3%".
std::string span_style(double start, double length, double whole);

/// An HTML builder. Escapes everything except the names of tags and attributes. Not thread-safe.
class Html {
 public:
  using Attributes = std::initializer_list<std::pair<const char*, std::string_view>>;

  Html& open(const char* tag, Attributes attributes = {});
  Html& close(const char* tag);
  Html& text(std::string_view text);
  /// Writes an element that contains only text.
  Html& put(const char* tag, Attributes attributes, std::string_view text = {});
  Html& put(const char* tag, std::string_view text) { return put(tag, {}, text); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace kiln::report
