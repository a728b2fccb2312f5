// SPDX-License-Identifier: Apache-2.0
#include "trust/policy.hpp"

#include <algorithm>
#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

// The order of the checks. It keeps an attacker from choosing the reason that the user sees:
//   1. an invalid namespace: its text is never repeated, and no check looks it up;
//   2. a missing signature;
//   3. the key, by its id alone; for a host it is the key that certified the host. An unknown key, a revoked key that
//      the policy no longer lists, and a live namespace without a certificate end here: the content of such a record is
//      unproven, and the message states no more than the claimed key;
//   4. the signatures: the certificate's by that key, then the statement's by the host key, or by that key;
//   5. the statement: revoked keys, namespaces, days and epochs. A record that gets this far was signed with the keys.

namespace kiln {
namespace {

constexpr std::string_view kBelow = "/*";

TrustError trust_error(TrustError::Reason reason, std::string message) { return {reason, std::move(message)}; }

Status rejection(TrustError error) { return make_error(Code::Denied, std::move(error.message)); }

TrustError not_a_name_space() {
  // The text is not repeated: it is untrusted and can contain anything.
  return trust_error(TrustError::Reason::InvalidNamespace, "its namespace is invalid; it was not created by kiln");
}

TrustError revoked(const KeyId& key) {
  return trust_error(TrustError::Reason::RevokedKey,
                     "it is signed with key " + short_id(key) +
                         ", which the trust policy has revoked; get a version signed with "
                         "another key");
}

TrustError bad_signature(const KeyId& key) {
  return trust_error(TrustError::Reason::BadSignature,
                     "the signature is invalid: the content changed after key " + short_id(key) +
                         " signed it, or the key signed other content; download it again from "
                         "its publisher");
}

/// Epochs of live namespaces are days. The clocks of hosts can differ by a day, as all do around midnight.
constexpr std::uint64_t kDaysAhead = 1;

}  // namespace

const char* to_string(TrustError::Reason reason) {
  switch (reason) {
    case TrustError::Reason::Unsigned: return "unsigned";
    case TrustError::Reason::InvalidNamespace: return "invalid_namespace";
    case TrustError::Reason::UnknownKey: return "unknown_key";
    case TrustError::Reason::RevokedKey: return "revoked_key";
    case TrustError::Reason::NamespaceNotAllowed: return "namespace_not_allowed";
    case TrustError::Reason::BadSignature: return "bad_signature";
    case TrustError::Reason::EpochTooOld: return "epoch_too_old";
    case TrustError::Reason::EpochInFuture: return "epoch_in_future";
    case TrustError::Reason::LiveNamespaceNotTrusted: return "live_namespace_not_trusted";
    case TrustError::Reason::NotCertified: return "not_certified";
    case TrustError::Reason::CertificateExpired: return "certificate_expired";
    case TrustError::Reason::ExternalCode: return "foreign_code";
  }
  return "unsigned";
}

bool is_name_space_pattern(std::string_view text) {
  if (text == "*") return true;
  if (text.ends_with(kBelow)) text.remove_suffix(kBelow.size());
  return is_name_space(text);
}

bool is_live_pattern(std::string_view text) { return text != "*" && is_name_space_pattern(text); }

bool pattern_matches(std::string_view pattern, std::string_view name_space) {
  if (!is_name_space_pattern(pattern) || !is_name_space(name_space)) return false;
  if (pattern == "*") return true;
  if (!pattern.ends_with(kBelow)) return pattern == name_space;
  pattern.remove_suffix(1);  // `acme/`: only namespaces below it start with this prefix
  return name_space.starts_with(pattern);
}

void TrustPolicy::add_key(const PublicKey& key, const std::string& pattern) {
  auto voice =
      std::find_if(trusted_keys_.begin(), trusted_keys_.end(), [&](const TrustedKey& each) { return each.key == key; });
  if (voice == trusted_keys_.end()) voice = trusted_keys_.insert(trusted_keys_.end(), TrustedKey{key, {}});
  std::vector<std::string>& patterns = voice->patterns;
  if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(pattern);
}

void TrustPolicy::require_epoch(const std::string& pattern, std::uint64_t epoch) {
  std::uint64_t& minimum = min_epochs_[pattern];
  minimum = std::max(minimum, epoch);
}

void TrustPolicy::trust_live_namespace(const std::string& pattern, std::uint64_t days) {
  if (!is_live_pattern(pattern)) return;
  const auto [place, added] = live_days_.emplace(pattern, days);
  if (!added) place->second = std::min(place->second, days);
}

void TrustPolicy::revoke(const KeyId& key) { revoked_.insert(key); }

void TrustPolicy::add(const TrustPolicy& other) {
  if (this == &other) return;
  for (const TrustedKey& voice : other.trusted_keys_) {
    for (const std::string& pattern : voice.patterns) add_key(voice.key, pattern);
  }
  for (const auto& [pattern, epoch] : other.min_epochs_) require_epoch(pattern, epoch);
  for (const auto& [pattern, days] : other.live_days_) trust_live_namespace(pattern, days);
  revoked_.insert(other.revoked_.begin(), other.revoked_.end());
  unsigned_allowed_ = unsigned_allowed_ || other.unsigned_allowed_;
  external_rejected_ = external_rejected_ || other.external_rejected_;
}

Status TrustPolicy::verify_bundle(const Statement& statement, const Signature* signature) const {
  const std::string& name = statement.name_space;
  if (!is_name_space(name)) return rejection(not_a_name_space());
  if (signature != nullptr) {
    if (std::optional<TrustError> error = check_signature(statement, *signature)) return rejection(*std::move(error));
  } else if (!unsigned_allowed_) {
    return make_error(Code::Denied,
                      "the bundle is not signed; sign it with 'kiln bundle create --key' or set trust.unsigned "
                      "(KILN_TRUST_UNSIGNED=1)");
  }
  if (live_days(name)) {
    return make_error(
        Code::Denied,
        "'" + name +
            "' is a live namespace of the trust policy, where hosts publish temporary artifacts and bundles are "
            "not trusted; build the bundle in another namespace");
  }
  if (std::optional<TrustError> error = check_epoch(statement)) return rejection(*std::move(error));
  if (std::optional<TrustError> error = check_maker(statement)) return rejection(*std::move(error));
  return {};
}

std::optional<TrustError> TrustPolicy::verify(const SignedStatement& stated, std::chrono::nanoseconds wall) const {
  const Statement& statement = stated.statement;
  const std::string& name = statement.name_space;
  if (!is_name_space(name)) return not_a_name_space();
  if (!stated.signature) {
    return trust_error(TrustError::Reason::Unsigned,
                       "it is not signed, and entries of a remote store must be; set remote.signing_key on the hosts "
                       "that publish");
  }
  const bool live = live_days(name).has_value();
  if (stated.certificate) {
    if (std::optional<TrustError> error = check_host_certificate(stated)) return error;
    if (!live) {
      return trust_error(TrustError::Reason::LiveNamespaceNotTrusted,
                         "a host published it in '" + name +
                             "', which is not a live namespace of the trust policy; to trust " +
                             "hosts there, add a [[live]] entry for it to the policy file");
    }
    if (std::optional<TrustError> error = check_live_age(stated, day_of(wall))) return error;
    if (std::optional<TrustError> error = check_epoch(statement)) return error;
    return check_maker(statement);
  }
  std::optional<TrustError> error = check_signature(statement, *stated.signature);
  // Most likely a host without a configured certificate. A policy is not expected to list the key of such a host.
  if (live && (!error || error->reason == TrustError::Reason::UnknownKey)) {
    return trust_error(TrustError::Reason::NotCertified,
                       "it is signed with key " + short_id(stated.signature->key) + " without a certificate, and '" +
                           name +
                           "' is a live namespace, where only certified hosts are trusted; certify its key with 'kiln "
                           "key certify' and set remote.certificate on the publishing host");
  }
  if (!error) error = check_epoch(statement);
  return error ? error : check_maker(statement);
}

const TrustPolicy::TrustedKey* TrustPolicy::find_key(const KeyId& key) const {
  const auto voice = std::find_if(trusted_keys_.begin(), trusted_keys_.end(),
                                  [&](const TrustedKey& each) { return each.key.id() == key; });
  return voice == trusted_keys_.end() ? nullptr : &*voice;
}

TrustError TrustPolicy::unknown_key_error(const KeyId& key, const char* deed) const {
  // A revoked key has usually been removed from the policy too; the message must not suggest adding it again.
  if (revoked_.contains(key)) return revoked(key);
  return trust_error(TrustError::Reason::UnknownKey, std::string("it is ") + deed + " key " + short_id(key) +
                                                         ", which is not in the trust policy; to trust that key, "
                                                         "add it to the policy file with 'kiln trust add KEY "
                                                         "--namespace NAME'");
}

/// Step 5 of the order, for a key of the policy.
std::optional<TrustError> TrustPolicy::check_key_scope(const TrustedKey& voice, const std::string& name) const {
  const KeyId key = voice.key.id();
  if (revoked_.contains(key)) return revoked(key);
  const auto speaks = [&](const std::string& pattern) { return pattern_matches(pattern, name); };
  if (std::any_of(voice.patterns.begin(), voice.patterns.end(), speaks)) return std::nullopt;
  return trust_error(TrustError::Reason::NamespaceNotAllowed,
                     "key " + short_id(key) + " is not allowed to sign for '" + name +
                         "'; add the namespace to this key in the policy file with 'kiln trust add KEY --namespace " +
                         name + "'");
}

std::optional<TrustError> TrustPolicy::check_signature(const Statement& statement, const Signature& signature) const {
  const TrustedKey* const voice = find_key(signature.key);
  if (voice == nullptr) return unknown_key_error(signature.key, "signed with");
  if (!verify_signature(voice->key, signature, statement)) return bad_signature(signature.key);
  return check_key_scope(*voice, statement.name_space);
}

std::optional<TrustError> TrustPolicy::check_host_certificate(const SignedStatement& stated) const {
  const Certificate& certificate = *stated.certificate;
  const KeyId authority = certificate.signature.key;
  const TrustedKey* const voice = find_key(authority);
  if (voice == nullptr) return unknown_key_error(authority, "by a host that was certified with");
  if (!verify_signature(voice->key, certificate.signature, certificate.statement())) return bad_signature(authority);
  const KeyId host = certificate.host.id();
  if (!verify_signature(certificate.host, *stated.signature, stated.statement)) return bad_signature(host);
  if (revoked_.contains(host)) return revoked(host);
  const std::string& name = stated.statement.name_space;
  if (std::optional<TrustError> error = check_key_scope(*voice, name)) return error;
  if (certificate.name_space == name) return std::nullopt;
  return trust_error(TrustError::Reason::NamespaceNotAllowed,
                     "the host with key " + short_id(host) + " is not certified for '" + name +
                         "' but for another namespace; to publish there, certify it " +
                         "again with 'kiln key certify --namespace " + name + "'");
}

std::optional<TrustError> TrustPolicy::check_live_age(const SignedStatement& stated, std::uint64_t today) const {
  const Certificate& certificate = *stated.certificate;
  const std::string host = "the host with key " + short_id(certificate.host.id());
  if (certificate.last_day < today) {
    return trust_error(TrustError::Reason::CertificateExpired,
                       "the certificate of " + host + " expired " + std::to_string(today - certificate.last_day) +
                           " days ago; certify it again with 'kiln key certify'");
  }
  const std::uint64_t day = stated.statement.epoch;
  if (day > today && day - today > kDaysAhead) {
    return trust_error(TrustError::Reason::EpochInFuture, host + " signed it for day " + std::to_string(day) +
                                                              ", and today is " + std::to_string(today) +
                                                              "; correct the clock that is wrong");
  }
  const std::uint64_t days = live_days(stated.statement.name_space).value_or(0);
  if (day >= today || today - day <= days) return std::nullopt;
  return trust_error(TrustError::Reason::EpochTooOld,
                     "it is too old: " + host + " signed it " + std::to_string(today - day) +
                         " days ago, and the trust policy accepts live artifacts for " + std::to_string(days) +
                         " days; it will be compiled again");
}

std::optional<TrustError> TrustPolicy::check_epoch(const Statement& statement) const {
  std::uint64_t minimum = 0;
  for (const auto& [pattern, epoch] : min_epochs_) {
    if (pattern_matches(pattern, statement.name_space)) minimum = std::max(minimum, epoch);
  }
  if (statement.epoch >= minimum) return std::nullopt;
  return trust_error(TrustError::Reason::EpochTooOld, "it is too old: it has epoch " + std::to_string(statement.epoch) +
                                                          ", and the trust policy requires " + std::to_string(minimum) +
                                                          " or later for '" + statement.name_space +
                                                          "'; get a newer version");
}

std::optional<TrustError> TrustPolicy::check_maker(const Statement& statement) const {
  if (!external_rejected_ || !statement.subject.starts_with(kExternalSubject)) return std::nullopt;
  return trust_error(
      TrustError::Reason::ExternalCode,
      "it contains code from another system, which the trust policy rejects (foreign = false); get a version "
      "without such code, or remove that line from the policy file");
}

bool TrustPolicy::may_trust(const std::string& name_space) const {
  return std::any_of(trusted_keys_.begin(), trusted_keys_.end(), [&](const TrustedKey& voice) {
    return std::any_of(voice.patterns.begin(), voice.patterns.end(),
                       [&](const std::string& pattern) { return pattern_matches(pattern, name_space); });
  });
}

std::vector<std::string> TrustPolicy::named() const {
  std::set<std::string> names;
  const auto add = [&](const std::string& pattern) {
    if (is_name_space(pattern) && may_trust(pattern)) names.insert(pattern);
  };
  for (const TrustedKey& voice : trusted_keys_) {
    for (const std::string& pattern : voice.patterns) add(pattern);
  }
  for (const auto& [pattern, days] : live_days_) add(pattern);
  return {names.begin(), names.end()};
}

std::optional<std::uint64_t> TrustPolicy::live_days(const std::string& name_space) const {
  std::optional<std::uint64_t> fewest;
  for (const auto& [pattern, days] : live_days_) {
    if (pattern_matches(pattern, name_space)) fewest = std::min(fewest.value_or(days), days);
  }
  return fewest;
}

std::vector<std::string> TrustPolicy::live() const {
  std::vector<std::string> patterns;
  for (const auto& [pattern, days] : live_days_) patterns.push_back(pattern);
  return patterns;
}

Digest TrustPolicy::fingerprint() const {
  // Sorted, because the order in which a policy was written does not affect its meaning.
  std::set<std::pair<Digest, std::string>> voices;
  for (const TrustedKey& voice : trusted_keys_) {
    for (const std::string& pattern : voice.patterns) voices.emplace(Digest{voice.key.bytes}, pattern);
  }
  const auto size = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  BinaryWriter writer;
  writer.text("kiln trust policy 1").u32(size(voices));
  for (const auto& [key, pattern] : voices) writer.digest(key).text(pattern);
  for (const auto* numbers : {&min_epochs_, &live_days_}) {
    writer.u32(size(*numbers));
    for (const auto& [pattern, number] : *numbers) writer.text(pattern).u64(number);
  }
  writer.u32(size(revoked_));
  for (const KeyId& key : revoked_) writer.digest(key.digest);
  writer.u8(unsigned_allowed_ ? 1 : 0).u8(external_rejected_ ? 1 : 0);
  return sha256(writer.bytes());
}

}  // namespace kiln
