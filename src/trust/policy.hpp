// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <kiln/result.hpp>

#include "trust/keys.hpp"
#include "trust/signed_statement.hpp"
#include "trust/statement.hpp"

namespace kiln {

/// The reason why a policy rejects a statement: a code for events and metrics, and a message.
struct TrustError {
  enum class Reason : unsigned char {
    Unsigned,
    InvalidNamespace,
    UnknownKey,
    RevokedKey,
    NamespaceNotAllowed,      ///< the key is not allowed to sign for this namespace
    BadSignature,             ///< for other content, or by another key
    EpochTooOld,              ///< before the minimum epoch of its namespace; in a live namespace: too many days ago
    EpochInFuture,            ///< a live statement of a future day
    LiveNamespaceNotTrusted,  ///< a live namespace that the policy does not list
    NotCertified,             ///< in a live namespace, by a key that is not a certified host key
    CertificateExpired,
    ExternalCode,  ///< code from another system, which the policy rejects
  };
  Reason reason = Reason::Unsigned;
  std::string message;
};
/// Returns "unsigned", "unknown_key", "epoch_too_old", and so on.
const char* to_string(TrustError::Reason reason);

/// The keys that are allowed to sign for each namespace, and their minimum epochs. A value type. A new policy trusts
/// nothing.
class TrustPolicy {
 public:
  /// Adds a trusted key. `pattern` is a namespace, a namespace with `/*` for all below it, or `*` for all.
  void add_key(const PublicKey& key, const std::string& pattern);
  /// Sets the minimum epoch of statements in namespaces that match the pattern. If several patterns match, the highest
  /// applies.
  void require_epoch(const std::string& pattern, std::uint64_t epoch);
  /// Rejects statements about code from another system (docs/how-to/adapters.md), regardless of the signer.
  void reject_external() { external_rejected_ = true; }
  /// Accepts unsigned bundles too, for development.
  void allow_unsigned() { unsigned_allowed_ = true; }
  /// Trusts hosts in this namespace (or in all below it, with `/*`) that a key of the policy has certified, for
  /// statements signed at most `days` ago. If several patterns match, the lowest number applies. Such a namespace is
  /// live, and trusts nothing else. Ignores a pattern for which is_live_pattern() returns false.
  void trust_live_namespace(const std::string& pattern, std::uint64_t days);
  /// Rejects everything that this key signed, and everything signed by a host that it certified.
  void revoke(const KeyId& key);
  bool is_revoked(const KeyId& key) const { return revoked_.contains(key); }
  /// Merges another policy: all keys of both, the highest epochs, all live namespaces with the lowest number of days,
  /// all revocations. Unsigned bundles are allowed if either policy allows them; code from other systems is rejected if
  /// either policy rejects it.
  void add(const TrustPolicy& other);

  /// Returns the patterns of trusted live namespaces, in order, for display.
  std::vector<std::string> live() const;
  /// Returns whether a namespace is live.
  bool is_live(const std::string& name_space) const { return live_days(name_space).has_value(); }
  /// Returns whether any key is allowed to sign for a namespace. If not, nothing in it is ever trusted.
  bool may_trust(const std::string& name_space) const;
  /// Returns the namespaces that the policy names without a wildcard, in ascending order.
  std::vector<std::string> named() const;
  bool allows_unsigned() const { return unsigned_allowed_; }
  bool empty() const { return trusted_keys_.empty() && !unsigned_allowed_; }

  /// Verifies a bundle; `signature` is null if it is not signed. Returns Code::Denied with the reason and the next
  /// step if the bundle is not trusted. A bundle in a live namespace is always rejected: host artifacts cannot be
  /// released.
  Status verify_bundle(const Statement& statement, const Signature* signature) const;
  /// Verifies a statement that is stored with its content, live or not; `wall` is the current time. Returns nothing if
  /// it is trusted. Unsigned content is rejected regardless of `allow_unsigned`: that setting is for files that the
  /// user chose, and any client can write to a remote store.
  std::optional<TrustError> verify(const SignedStatement& stated, std::chrono::nanoseconds wall) const;

  /// Returns a digest of the policy, to distinguish decisions made under different policies.
  Digest fingerprint() const;

 private:
  struct TrustedKey {
    PublicKey key;
    std::vector<std::string> patterns;
  };
  const TrustedKey* find_key(const KeyId& key) const;
  TrustError unknown_key_error(const KeyId& key, const char* deed) const;
  std::optional<TrustError> check_key_scope(const TrustedKey& voice, const std::string& name) const;
  std::optional<TrustError> check_signature(const Statement& statement, const Signature& signature) const;
  std::optional<TrustError> check_host_certificate(const SignedStatement& stated) const;
  std::optional<TrustError> check_live_age(const SignedStatement& stated, std::uint64_t today) const;
  std::optional<TrustError> check_epoch(const Statement& statement) const;
  std::optional<TrustError> check_maker(const Statement& statement) const;
  std::optional<std::uint64_t> live_days(const std::string& name_space) const;

  std::vector<TrustedKey> trusted_keys_;
  std::map<std::string, std::uint64_t> min_epochs_;  // by pattern
  std::map<std::string, std::uint64_t> live_days_;   // by pattern
  std::set<KeyId> revoked_;
  bool unsigned_allowed_ = false;
  bool external_rejected_ = false;
};

/// `pattern_matches` returns whether a namespace matches a pattern, `is_name_space_pattern` whether a text is a
/// pattern.
bool pattern_matches(std::string_view pattern, std::string_view name_space);
bool is_name_space_pattern(std::string_view text);
/// Returns whether a pattern can name live namespaces. `*` cannot, because then every namespace would be live.
bool is_live_pattern(std::string_view text);
/// Maximum number of days that a live statement can be trusted.
constexpr std::uint64_t kMaxLiveDays = 365;

}  // namespace kiln
