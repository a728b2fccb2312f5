// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/version_range.hpp"

#include <charconv>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kiln::jit {

std::optional<Release> parse_release(std::string_view version) {
  version = version.substr(0, version.find('+'));
  if (const std::size_t post = version.find(".post"); post != std::string_view::npos) version = version.substr(0, post);
  if (version.empty() || version.ends_with('.')) return std::nullopt;
  Release release;
  for (const std::string_view part : split(version, '.')) {
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (part.empty() || error != std::errc() || stop != part.data() + part.size() || release.size() == 8)
      return std::nullopt;
    release.push_back(number);
  }
  while (!release.empty() && release.back() == 0) release.pop_back();
  return release;
}

Result<VersionRange> VersionRange::parse(std::string_view text) {
  static constexpr std::pair<std::string_view, Op> kOps[] = {
      {">=", Op::AtLeast}, {"<=", Op::AtMost}, {"==", Op::Equal}, {"<", Op::Less}, {">", Op::Greater}};
  VersionRange range;
  range.text_ = text;
  if (text.empty()) return make_error(Code::InvalidArgument, "a range of versions must not be empty; use >=0 for all");
  for (std::string_view part : split(text, ',')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    bool parsed = false;
    for (const auto& [sign, op] : kOps) {
      if (!part.starts_with(sign)) continue;
      auto release = parse_release(part.substr(sign.size()));
      if (!release) break;
      range.bounds_.push_back({op, std::move(*release)});
      parsed = true;
      break;
    }
    if (!parsed) {
      return make_error(Code::InvalidArgument,
                        "'" + std::string(text) + "' is not a range of versions; use comparisons such as >=3.4, <3.10");
    }
  }
  return range;
}

bool VersionRange::contains(const Release& release) const {
  for (const Bound& bound : bounds_) {
    bool holds = false;
    switch (bound.op) {
      case Op::Less: holds = release < bound.release; break;
      case Op::AtMost: holds = release <= bound.release; break;
      case Op::Equal: holds = release == bound.release; break;
      case Op::AtLeast: holds = release >= bound.release; break;
      case Op::Greater: holds = release > bound.release; break;
    }
    if (!holds) return false;
  }
  return true;
}

}  // namespace kiln::jit
