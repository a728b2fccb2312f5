// SPDX-License-Identifier: Apache-2.0
#include "trust/namespace_scope.hpp"

#include <algorithm>
#include <utility>

#include "base/codec.hpp"
#include "base/format.hpp"
#include "trust/policy.hpp"

namespace kiln {

NamespaceScope NamespaceScope::narrowed(std::vector<std::string> patterns) const {
  NamespaceScope narrower = *this;
  if (!patterns.empty()) narrower.lists_.push_back(std::move(patterns));
  return narrower;
}

bool NamespaceScope::admits(std::string_view name_space) const {
  return std::all_of(lists_.begin(), lists_.end(), [&](const std::vector<std::string>& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const std::string& each) { return pattern_matches(each, name_space); });
  });
}

std::vector<std::string> NamespaceScope::named() const {
  std::vector<std::string> names;
  for (const std::vector<std::string>& list : lists_) {
    for (const std::string& each : list) {
      const bool is_new = std::find(names.begin(), names.end(), each) == names.end();
      if (is_new && admits(each)) names.push_back(each);  // a wildcard is not a namespace, so it is not admitted
    }
  }
  return names;
}

std::string NamespaceScope::text() const {
  std::string text;
  for (const std::vector<std::string>& list : lists_)
    text += (text.empty() ? "" : " within ") + join_strings(list, {}, ", ");
  return text;
}

std::string NamespaceScope::encode() const {
  BinaryWriter out;
  out.u32(static_cast<std::uint32_t>(lists_.size()));
  for (const std::vector<std::string>& list : lists_) {
    out.u32(static_cast<std::uint32_t>(list.size()));
    for (const std::string& each : list) out.text(each);
  }
  return std::string(out.bytes());
}

}  // namespace kiln
