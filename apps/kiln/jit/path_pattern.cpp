// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/path_pattern.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kiln::jit {
namespace {

constexpr std::size_t kMaxPath = 1024;
constexpr std::size_t kMaxName = 255;

bool is_safe_name(std::string_view name) {
  if (name.empty() || name.size() > kMaxName || name == "." || name == "..") return false;
  return std::none_of(name.begin(), name.end(), [](char each) { return static_cast<unsigned char>(each) < 0x20; });
}

// Returns the index after the `]` of a set that starts at `at`, and appends its ranges. Returns 0 if it is malformed.
std::size_t parse_set(std::string_view text, std::size_t at, std::string& ranges) {
  const std::size_t end = text.find(']', at + 1);
  if (end == std::string_view::npos || end == at + 1) return 0;
  for (std::size_t i = at + 1; i < end; ++i) {
    const bool is_range = i + 2 < end && text[i + 1] == '-';
    const char last = is_range ? text[i + 2] : text[i];
    if (last < text[i]) return 0;
    ranges += {text[i], last};
    if (is_range) i += 2;
  }
  return end + 1;
}

bool is_in(const std::string& ranges, char each) {
  if (ranges.empty()) return true;
  for (std::size_t i = 0; i + 1 < ranges.size(); i += 2) {
    if (ranges[i] <= each && each <= ranges[i + 1]) return true;
  }
  return false;
}

}  // namespace

bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath || path.back() == '/') return false;
  const auto names = split(path, '/');
  return std::all_of(names.begin(), names.end(), is_safe_name);
}

Result<std::vector<PathPattern::Element>> PathPattern::parse_component(std::string_view text) {
  std::vector<Element> elements;
  for (std::size_t at = 0; at < text.size();) {
    Element element;
    const char each = text[at];
    if (each == '*') {
      element.any = true;
      ++at;
    } else if (each == '[') {
      at = parse_set(text, at, element.set);
      if (at == 0) return make_error(Code::InvalidArgument, "a set must be closed, not empty and in order: [0-9a-f]");
    } else if (each == ']' || each == '{' || each == '}') {
      return make_error(Code::InvalidArgument, std::string("unexpected '") + each + "'");
    } else {
      if (each != '?') element.set = {each, each};
      ++at;
    }
    if (at < text.size() && text[at] == '{') {
      const char* const end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data() + at + 1, end, element.count);
      if (element.any || error != std::errc() || stop == end || *stop != '}' || element.count == 0 ||
          element.count > kMaxName) {
        return make_error(Code::InvalidArgument, "a repetition is a number from 1 to 255 after one character or set");
      }
      at = static_cast<std::size_t>(stop - text.data()) + 1;
    }
    elements.push_back(std::move(element));
  }
  return elements;
}

Result<PathPattern> PathPattern::parse(std::string_view text) {
  const auto bad = [&](const std::string& reason) {
    return make_error(Code::InvalidArgument, "'" + std::string(text) + "' is not a pattern: " + reason);
  };
  if (!is_safe_path(text)) return bad("it must be a relative path without '.', '..' and empty components");
  PathPattern pattern;
  pattern.text_ = text;
  for (const std::string_view name : split(text, '/')) {
    auto component = parse_component(name);
    if (!component) return bad(component.error().message);
    pattern.components_.push_back(std::move(*component));
  }
  return pattern;
}

bool PathPattern::matches_component(std::size_t index, std::string_view name) const {
  const std::vector<Element>& elements = components_[index];
  // The positions in the name that the elements so far can reach.
  std::vector<bool> reached(name.size() + 1, false);
  reached[0] = true;
  for (const Element& element : elements) {
    std::vector<bool> next(name.size() + 1, false);
    for (std::size_t at = 0; at <= name.size(); ++at) {
      if (!reached[at]) continue;
      if (element.any) {
        std::fill(next.begin() + static_cast<std::ptrdiff_t>(at), next.end(), true);
        break;
      }
      if (at + element.count > name.size()) break;
      const std::string_view part = name.substr(at, element.count);
      if (std::all_of(part.begin(), part.end(), [&](char each) { return is_in(element.set, each); }))
        next[at + element.count] = true;
    }
    reached = std::move(next);
  }
  return reached[name.size()];
}

bool PathPattern::matches(std::string_view path) const {
  const auto names = split(path, '/');
  if (names.size() != components_.size()) return false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!matches_component(i, names[i])) return false;
  }
  return true;
}

bool PathPattern::matches_file(std::string_view path) const {
  return matches(depth() == 1 ? path.substr(path.rfind('/') + 1) : path);
}

}  // namespace kiln::jit
