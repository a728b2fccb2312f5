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

/// Why a policy does not believe something: a word for events and counts, and a sentence for people.
struct Doubt {
  enum class Why : unsigned char {
    Unsigned,
    NotANamespace,
    UnknownKey,
    RevokedKey,
    OtherNamespace,  ///< the key may not speak for it
    BadSignature,    ///< over something else, or by somebody else
    OldEpoch,        ///< before the least epoch of its namespace; of a live one: too many days ago
    FutureEpoch,     ///< a live statement of a day that has not come
    LiveNotNamed,    ///< a live namespace that the policy does not name
    NotCertified,    ///< in a live namespace, by a key that is no certified host's
    CertificateExpired,
  };
  Why why = Why::Unsigned;
  std::string message;
};
/// "unsigned", "unknown_key", "old_epoch".
const char* to_string(Doubt::Why why);

/// Which keys may speak for which namespaces, and since when. A value; as it is made it believes nobody.
class TrustPolicy {
 public:
  /// `pattern` is a namespace, one with `/*` behind it for all below, or `*` for all.
  void trust(const PublicKey& key, const std::string& pattern);
  /// Statements of namespaces that the pattern covers must be of this epoch or later. Of several the latest counts.
  void require_epoch(const std::string& pattern, std::uint64_t epoch);
  /// Believes what nobody signed, too: for development.
  void allow_unsigned() { unsigned_allowed_ = true; }
  /// Believes hosts in this namespace (or all below it, with `/*`) that a key of the policy has certified, for what
  /// they signed at most `days` before today; of several the fewest count. A namespace that is named here is live, and
  /// believed in no other way. What is_live_pattern() does not take is not taken here.
  void accept_live(const std::string& pattern, std::uint64_t days);
  /// Nothing that this key signed is believed any more, nor what a host signed that it certified.
  void revoke(const KeyId& key);
  /// What both say together: every key of either, the latest epochs, every live namespace for the fewest days, every
  /// revocation, unsigned where either allows it.
  void add(const TrustPolicy& other);

  /// The patterns of live namespaces that are believed, in their order: for people.
  std::vector<std::string> live() const;
  bool allows_unsigned() const { return unsigned_allowed_; }
  bool empty() const { return voices_.empty() && !unsigned_allowed_; }

  /// Whether a bundle may be believed; `signature` is null where nobody signed. Code::Refused says why not and what to
  /// do. A bundle in a live namespace never is: what hosts made is not made a release of.
  Status admit(const Statement& statement, const Signature* signature) const;
  /// Likewise for what travels with its statement, live or not; `wall` is the time now. Nothing: it may be believed.
  /// What nobody signed is not, whatever `allow_unsigned` says: that is for files that somebody chose, and a remote
  /// store has what anybody wrote there.
  std::optional<Doubt> doubt(const SignedStatement& stated, std::chrono::nanoseconds wall) const;

  /// Names what the policy says, so that what was believed under another policy can be told apart.
  Digest fingerprint() const;

 private:
  struct Voice {
    PublicKey key;
    std::vector<std::string> patterns;
  };
  const Voice* voice_of(const KeyId& key) const;
  Doubt unknown(const KeyId& key, const char* deed) const;
  std::optional<Doubt> doubt_voice(const Voice& voice, const std::string& name) const;
  std::optional<Doubt> doubt_signed(const Statement& statement, const Signature& signature) const;
  std::optional<Doubt> doubt_host(const SignedStatement& stated) const;
  std::optional<Doubt> doubt_day(const SignedStatement& stated, std::uint64_t today) const;
  std::optional<Doubt> doubt_epoch(const Statement& statement) const;
  std::optional<std::uint64_t> live_days(const std::string& name_space) const;

  std::vector<Voice> voices_;
  std::map<std::string, std::uint64_t> least_epochs_;  // by pattern
  std::map<std::string, std::uint64_t> live_days_;     // by pattern
  std::set<KeyId> revoked_;
  bool unsigned_allowed_ = false;
};

/// Whether a namespace is covered by a pattern, and whether a text is a pattern at all.
bool covers(std::string_view pattern, std::string_view name_space);
bool is_name_space_pattern(std::string_view text);
/// Whether it can name live namespaces: `*` cannot, because then every namespace would be.
bool is_live_pattern(std::string_view text);
/// The most days that a live statement may be believed for: a host's word is for the time being.
constexpr std::uint64_t kMostLiveDays = 365;

}  // namespace kiln
