#include "trust/policy.hpp"

#include <algorithm>
#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"

// In which order a policy doubts, so that nobody who forges chooses the reason that people see:
//   1. a namespace that is none: its text is never repeated, and nothing looks it up;
//   2. no signature;
//   3. the key, by its id alone: of a host it is the one that certified it. An unknown key, a revoked one that the
//      policy no longer has, and a live namespace without a certificate end here: what such a record says about
//      itself is unproven, and the message says no more than that it says so;
//   4. the signatures: the certificate's by that key, then the statement's by the host's, or by that key;
//   5. only then what is stated: revoked keys, namespaces, days and epochs. Whoever gets this far had the keys.

namespace kiln {
namespace {

constexpr std::string_view kBelow = "/*";

Doubt doubted(Doubt::Why why, std::string message) { return {why, std::move(message)}; }

Status refusal(Doubt doubt) { return failure(Code::Refused, std::move(doubt.message)); }

Doubt not_a_name_space() {
  // Its text is not repeated: it comes from outside, and may be anything.
  return doubted(Doubt::Why::NotANamespace, "what it gives as its namespace is none; it was not made by kiln");
}

Doubt revoked(const KeyId& key) {
  return doubted(Doubt::Why::RevokedKey, "it is signed with key " + short_id(key) +
                                             ", which the trust policy has revoked; get one that is signed with "
                                             "another key, or have its maker sign it again");
}

Doubt bad_signature(const KeyId& key) {
  return doubted(Doubt::Why::BadSignature, "its signature does not hold: it was changed after key " + short_id(key) +
                                               " signed it, or that key signed something else; get it again from "
                                               "whoever made it");
}

/// Epochs of live namespaces are days, and a clock may be a day ahead where another is not: at midnight they all are.
constexpr std::uint64_t kDaysAhead = 1;

}  // namespace

const char* to_string(Doubt::Why why) {
  switch (why) {
    case Doubt::Why::Unsigned: return "unsigned";
    case Doubt::Why::NotANamespace: return "not_a_namespace";
    case Doubt::Why::UnknownKey: return "unknown_key";
    case Doubt::Why::RevokedKey: return "revoked_key";
    case Doubt::Why::OtherNamespace: return "other_namespace";
    case Doubt::Why::BadSignature: return "bad_signature";
    case Doubt::Why::OldEpoch: return "old_epoch";
    case Doubt::Why::FutureEpoch: return "future_epoch";
    case Doubt::Why::LiveNotNamed: return "live_not_named";
    case Doubt::Why::NotCertified: return "not_certified";
    case Doubt::Why::CertificateExpired: return "certificate_expired";
  }
  return "unsigned";
}

bool is_name_space_pattern(std::string_view text) {
  if (text == "*") return true;
  if (text.ends_with(kBelow)) text.remove_suffix(kBelow.size());
  return is_name_space(text);
}

bool is_live_pattern(std::string_view text) { return text != "*" && is_name_space_pattern(text); }

bool covers(std::string_view pattern, std::string_view name_space) {
  if (!is_name_space_pattern(pattern) || !is_name_space(name_space)) return false;
  if (pattern == "*") return true;
  if (!pattern.ends_with(kBelow)) return pattern == name_space;
  pattern.remove_suffix(1);  // `acme/`: nothing but what is below begins with it
  return name_space.starts_with(pattern);
}

void TrustPolicy::trust(const PublicKey& key, const std::string& pattern) {
  auto voice = std::find_if(voices_.begin(), voices_.end(), [&](const Voice& each) { return each.key == key; });
  if (voice == voices_.end()) voice = voices_.insert(voices_.end(), Voice{key, {}});
  std::vector<std::string>& patterns = voice->patterns;
  if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(pattern);
}

void TrustPolicy::require_epoch(const std::string& pattern, std::uint64_t epoch) {
  std::uint64_t& least = least_epochs_[pattern];
  least = std::max(least, epoch);
}

void TrustPolicy::accept_live(const std::string& pattern, std::uint64_t days) {
  if (!is_live_pattern(pattern)) return;
  const auto [place, added] = live_days_.emplace(pattern, days);
  if (!added) place->second = std::min(place->second, days);
}

void TrustPolicy::revoke(const KeyId& key) { revoked_.insert(key); }

void TrustPolicy::add(const TrustPolicy& other) {
  if (this == &other) return;
  for (const Voice& voice : other.voices_) {
    for (const std::string& pattern : voice.patterns) trust(voice.key, pattern);
  }
  for (const auto& [pattern, epoch] : other.least_epochs_) require_epoch(pattern, epoch);
  for (const auto& [pattern, days] : other.live_days_) accept_live(pattern, days);
  revoked_.insert(other.revoked_.begin(), other.revoked_.end());
  unsigned_allowed_ = unsigned_allowed_ || other.unsigned_allowed_;
}

Status TrustPolicy::admit(const Statement& statement, const Signature* signature) const {
  const std::string& name = statement.name_space;
  if (!is_name_space(name)) return refusal(not_a_name_space());
  if (signature != nullptr) {
    if (std::optional<Doubt> doubt = doubt_signed(statement, *signature)) return refusal(*std::move(doubt));
  } else if (!unsigned_allowed_) {
    return failure(Code::Refused,
                   "nobody signed it; sign it with 'kiln bundle create --key', or allow it with trust.unsigned");
  }
  if (live_days(name)) {
    return failure(Code::Refused, "the trust policy has '" + name +
                                      "' as a live namespace, for what hosts make for the time being, and no bundle is "
                                      "believed there; build it in another one");
  }
  if (std::optional<Doubt> doubt = doubt_epoch(statement)) return refusal(*std::move(doubt));
  return {};
}

std::optional<Doubt> TrustPolicy::doubt(const SignedStatement& stated, std::chrono::nanoseconds wall) const {
  const Statement& statement = stated.statement;
  const std::string& name = statement.name_space;
  if (!is_name_space(name)) return not_a_name_space();
  if (!stated.signature) {
    return doubted(Doubt::Why::Unsigned,
                   "nobody signed it, and from a remote store nothing is believed without; give the hosts that "
                   "publish a key with remote.sign");
  }
  const bool live = live_days(name).has_value();
  if (stated.certificate) {
    if (std::optional<Doubt> doubt = doubt_host(stated)) return doubt;
    if (!live) {
      return doubted(Doubt::Why::LiveNotNamed,
                     "a host made it in '" + name + "', which the trust policy does not name as a live namespace; if " +
                         "hosts are to be believed there, add a [[live]] with it to the policy file");
    }
    if (std::optional<Doubt> doubt = doubt_day(stated, day_of(wall))) return doubt;
    return doubt_epoch(statement);
  }
  std::optional<Doubt> doubt = doubt_signed(statement, *stated.signature);
  // Most likely a host whose certificate nobody configured: that no policy has its key is as it should be.
  if (live && (!doubt || doubt->why == Doubt::Why::UnknownKey)) {
    return doubted(Doubt::Why::NotCertified,
                   "it is signed with key " + short_id(stated.signature->key) + " without a certificate, and '" + name +
                       "' is a live namespace, where only certified hosts are believed; certify its key with 'kiln "
                       "key certify' and name the certificate with remote.certificate on the host that publishes");
  }
  return doubt ? doubt : doubt_epoch(statement);
}

const TrustPolicy::Voice* TrustPolicy::voice_of(const KeyId& key) const {
  const auto voice =
      std::find_if(voices_.begin(), voices_.end(), [&](const Voice& each) { return each.key.id() == key; });
  return voice == voices_.end() ? nullptr : &*voice;
}

Doubt TrustPolicy::unknown(const KeyId& key, const char* deed) const {
  // Who revokes a key takes it out of the policy as well, as a rule, and must not be told to add it.
  if (revoked_.contains(key)) return revoked(key);
  return doubted(Doubt::Why::UnknownKey, std::string("it is ") + deed + " key " + short_id(key) +
                                             ", which the trust policy does not know; if that key is to be believed, "
                                             "add it to the policy file");
}

/// Step 5 of the order, for the key that the policy knows.
std::optional<Doubt> TrustPolicy::doubt_voice(const Voice& voice, const std::string& name) const {
  const KeyId key = voice.key.id();
  if (revoked_.contains(key)) return revoked(key);
  const auto speaks = [&](const std::string& pattern) { return covers(pattern, name); };
  if (std::any_of(voice.patterns.begin(), voice.patterns.end(), speaks)) return std::nullopt;
  return doubted(Doubt::Why::OtherNamespace, "key " + short_id(key) + " may not speak for '" + name +
                                                 "'; if it is to, add the namespace to the key in the policy file");
}

std::optional<Doubt> TrustPolicy::doubt_signed(const Statement& statement, const Signature& signature) const {
  const Voice* const voice = voice_of(signature.key);
  if (voice == nullptr) return unknown(signature.key, "signed with");
  if (!verifies(voice->key, signature, statement)) return bad_signature(signature.key);
  return doubt_voice(*voice, statement.name_space);
}

std::optional<Doubt> TrustPolicy::doubt_host(const SignedStatement& stated) const {
  const Certificate& certificate = *stated.certificate;
  const KeyId authority = certificate.signature.key;
  const Voice* const voice = voice_of(authority);
  if (voice == nullptr) return unknown(authority, "by a host that was certified with");
  if (!verifies(voice->key, certificate.signature, certificate.statement())) return bad_signature(authority);
  const KeyId host = certificate.host.id();
  if (!verifies(certificate.host, *stated.signature, stated.statement)) return bad_signature(host);
  if (revoked_.contains(host)) return revoked(host);
  const std::string& name = stated.statement.name_space;
  if (std::optional<Doubt> doubt = doubt_voice(*voice, name)) return doubt;
  if (certificate.name_space == name) return std::nullopt;
  return doubted(Doubt::Why::OtherNamespace, "the host with key " + short_id(host) + " is not certified for '" + name +
                                                 "' but for another namespace; if it is to publish there, certify it " +
                                                 "again with 'kiln key certify --namespace " + name + "'");
}

std::optional<Doubt> TrustPolicy::doubt_day(const SignedStatement& stated, std::uint64_t today) const {
  const Certificate& certificate = *stated.certificate;
  const std::string host = "the host with key " + short_id(certificate.host.id());
  if (certificate.last_day < today) {
    return doubted(Doubt::Why::CertificateExpired, "the certificate of " + host + " ended " +
                                                       std::to_string(today - certificate.last_day) +
                                                       " days ago; certify it again with 'kiln key certify'");
  }
  const std::uint64_t day = stated.statement.epoch;
  if (day > today && day - today > kDaysAhead) {
    return doubted(Doubt::Why::FutureEpoch, host + " signed it for day " + std::to_string(day) + ", and today is " +
                                                std::to_string(today) +
                                                "; set the clock of whichever of the two is wrong");
  }
  const std::uint64_t days = live_days(stated.statement.name_space).value_or(0);
  if (day >= today || today - day <= days) return std::nullopt;
  return doubted(Doubt::Why::OldEpoch, "it is too old: " + host + " signed it " + std::to_string(today - day) +
                                           " days ago, and the trust policy believes what is live for " +
                                           std::to_string(days) + "; it will be made again");
}

std::optional<Doubt> TrustPolicy::doubt_epoch(const Statement& statement) const {
  std::uint64_t least = 0;
  for (const auto& [pattern, epoch] : least_epochs_) {
    if (covers(pattern, statement.name_space)) least = std::max(least, epoch);
  }
  if (statement.epoch >= least) return std::nullopt;
  return doubted(Doubt::Why::OldEpoch, "it is too old: it has epoch " + std::to_string(statement.epoch) +
                                           ", and the trust policy wants " + std::to_string(least) + " or later for '" +
                                           statement.name_space + "'; get a newer one");
}

std::optional<std::uint64_t> TrustPolicy::live_days(const std::string& name_space) const {
  std::optional<std::uint64_t> fewest;
  for (const auto& [pattern, days] : live_days_) {
    if (covers(pattern, name_space)) fewest = std::min(fewest.value_or(days), days);
  }
  return fewest;
}

std::vector<std::string> TrustPolicy::live() const {
  std::vector<std::string> patterns;
  for (const auto& [pattern, days] : live_days_) patterns.push_back(pattern);
  return patterns;
}

Digest TrustPolicy::fingerprint() const {
  // Sorted, because the order in which a policy was said is no part of what it says.
  std::set<std::pair<Digest, std::string>> voices;
  for (const Voice& voice : voices_) {
    for (const std::string& pattern : voice.patterns) voices.emplace(Digest{voice.key.bytes}, pattern);
  }
  const auto size = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
  Writer writer;
  writer.text("kiln trust policy 1").u32(size(voices));
  for (const auto& [key, pattern] : voices) writer.digest(key).text(pattern);
  for (const auto* numbers : {&least_epochs_, &live_days_}) {
    writer.u32(size(*numbers));
    for (const auto& [pattern, number] : *numbers) writer.text(pattern).u64(number);
  }
  writer.u32(size(revoked_));
  for (const KeyId& key : revoked_) writer.digest(key.digest);
  writer.u8(unsigned_allowed_ ? 1 : 0);
  return sha256(writer.bytes());
}

}  // namespace kiln
