// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

namespace kiln::jit {

/// The numbers of a release such as 3.9.0, without zeros at the end.
using Release = std::vector<std::uint64_t>;

/// Parses the version of a Python distribution. A local part (`+cu12`) and a post-release (`.post1`) are ignored.
/// Returns nothing for a pre-release or a development version: rules do not cover these.
std::optional<Release> parse_release(std::string_view version);

/// A range of releases: comparisons separated by commas, such as `>=3.4, <3.10`. A value type.
class VersionRange {
 public:
  static Result<VersionRange> parse(std::string_view text);
  bool contains(const Release& release) const;
  const std::string& text() const { return text_; }

 private:
  enum class Op : unsigned char { Less, AtMost, Equal, AtLeast, Greater };
  struct Bound {
    Op op = Op::Equal;
    Release release;
  };
  std::string text_;
  std::vector<Bound> bounds_;
};

}  // namespace kiln::jit
