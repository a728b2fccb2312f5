// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln::jit {

/// Returns whether a text is a safe relative path: 1 to 1024 bytes, components of at most 255 bytes, none of them
/// empty, "." or "..", and no control characters.
bool is_safe_path(std::string_view path);

/// A pattern of relative paths: `*` matches any characters within one component, `?` one character, `[0-9a-f]` one of
/// a set; `{64}` after a character or a set repeats it. A value type.
class PathPattern {
 public:
  /// Returns Code::InvalidArgument with the reason if the text is not a pattern.
  static Result<PathPattern> parse(std::string_view text);

  /// Returns whether the pattern matches the whole path.
  bool matches(std::string_view path) const;
  /// Same, but a pattern without a slash matches the last component of the path.
  bool matches_file(std::string_view path) const;
  /// Returns the number of components.
  std::size_t depth() const { return components_.size(); }
  /// Returns whether one component matches the pattern's component with this index.
  bool matches_component(std::size_t index, std::string_view name) const;
  const std::string& text() const { return text_; }

 private:
  struct Element {
    bool any = false;    // `*`
    std::string set;     // ranges as pairs of characters; empty means any character
    unsigned count = 1;  // repetitions
  };
  static Result<std::vector<Element>> parse_component(std::string_view text);

  std::string text_;
  std::vector<std::vector<Element>> components_;
};

}  // namespace kiln::jit
