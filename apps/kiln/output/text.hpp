// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/visible_text.hpp"

namespace kiln::cli {

/// Text that is safe to print on a terminal. Control characters are escaped (visible_text) except line ends and tabs;
/// only a Console adds styles. Therefore untrusted text can be used in any line.
class Text {
 public:
  Text() = default;
  // Implicit, so that strings can be printed and combined with styled text.
  Text(std::string_view text) : bytes_(visible_text(text, "\n\t")) {}  // NOLINT(google-explicit-constructor)
  Text(const std::string& text) : Text(std::string_view(text)) {}      // NOLINT(google-explicit-constructor)
  Text(const char* text) : Text(std::string_view(text)) {}             // NOLINT(google-explicit-constructor)
  Text(char c) : Text(std::string_view(&c, 1)) {}                      // NOLINT(google-explicit-constructor)

  Text& operator+=(const Text& more) {
    bytes_ += more.bytes_;
    return *this;
  }
  friend Text operator+(Text left, const Text& right) { return left += right; }

  /// Returns the bytes to write to the terminal or pipe.
  const std::string& bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  friend class Console;
  std::string bytes_;
};

}  // namespace kiln::cli
