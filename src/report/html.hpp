#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace kiln::report {

/// Text as HTML shows it, within an element or a quoted attribute. Names in traces are anybody's: nothing of them
/// becomes a tag, and what would turn the direction of the text around them is replaced.
std::string escaped(std::string_view text);

/// JSON that may stand in a <script> element: it has no `<` and cannot end one.
std::string json_in_html(std::string json);

/// A style for something that lies from here to there on a line: "left:12.5%;width:3%".
std::string span_style(double start, double length, double whole);

/// Writes HTML piece by piece. Everything that it is given is text but the names of tags and attributes.
class Html {
 public:
  using Attributes = std::initializer_list<std::pair<const char*, std::string_view>>;

  Html& open(const char* tag, Attributes attributes = {});
  Html& close(const char* tag);
  Html& text(std::string_view text);
  /// An element with nothing but text in it.
  Html& put(const char* tag, Attributes attributes, std::string_view text = {});
  Html& put(const char* tag, std::string_view text) { return put(tag, {}, text); }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace kiln::report
