#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "trust/keys.hpp"
#include "trust/statement.hpp"

namespace kiln {

/// Which keys may speak for which namespaces, and since when. A value; as it is made it believes nobody.
class TrustPolicy {
 public:
  /// `pattern` is a namespace, one with `/*` behind it for all below, or `*` for all.
  void trust(const PublicKey& key, const std::string& pattern);
  /// Statements of namespaces that the pattern covers must be of this epoch or later. Of several the latest counts.
  void require_epoch(const std::string& pattern, std::uint64_t epoch);
  /// Believes what nobody signed, too: for development.
  void allow_unsigned() { unsigned_allowed_ = true; }
  /// What both say together: every key of either, the latest epochs, unsigned where either allows it.
  void add(const TrustPolicy& other);

  bool allows_unsigned() const { return unsigned_allowed_; }
  bool empty() const { return voices_.empty() && !unsigned_allowed_; }

  /// Whether what is stated may be believed; `signature` is null where nobody signed. Code::Refused says why not and
  /// what to do: no signature, an unknown key, a key for other namespaces, a signature over something else, too old.
  Status admit(const Statement& statement, const Signature* signature) const;

 private:
  struct Voice {
    PublicKey key;
    std::vector<std::string> patterns;
  };
  Status admit_signature(const Statement& statement, const Signature& signature) const;

  std::vector<Voice> voices_;
  std::map<std::string, std::uint64_t> least_epochs_;  // by pattern
  bool unsigned_allowed_ = false;
};

/// Whether a namespace is covered by a pattern, and whether a text is a pattern at all.
bool covers(std::string_view pattern, std::string_view name_space);
bool is_name_space_pattern(std::string_view text);

}  // namespace kiln
