// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// The set of namespaces that can serve a session or a unit: the namespaces that match every list of patterns. Without
/// a list it admits all namespaces; a policy decides separately which of them to trust. A value type; const access is
/// thread-safe.
class NamespaceScope {
 public:
  /// Returns this set restricted to namespaces that match these patterns; an empty list restricts nothing. An invalid
  /// pattern matches nothing, so that a typing error never admits more than intended.
  NamespaceScope narrowed(std::vector<std::string> patterns) const;

  bool admits(std::string_view name_space) const;
  bool admits_all() const { return lists_.empty(); }
  /// Returns the admitted namespaces that the lists name without a wildcard, in order, each once.
  std::vector<std::string> named() const;
  /// Returns the lists for messages: "acme/vision, acme/toys".
  std::string text() const;
  /// Returns an encoding; scopes with equal bytes admit the same namespaces.
  std::string encode() const;

  friend auto operator<=>(const NamespaceScope&, const NamespaceScope&) = default;

 private:
  std::vector<std::vector<std::string>> lists_;
};

}  // namespace kiln
