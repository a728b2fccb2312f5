#include "trust/policy.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kiln {
namespace {

constexpr std::string_view kBelow = "/*";

Error refusal(std::string message) { return failure(Code::Refused, std::move(message)); }

}  // namespace

bool is_name_space_pattern(std::string_view text) {
  if (text == "*") return true;
  if (text.ends_with(kBelow)) text.remove_suffix(kBelow.size());
  return is_name_space(text);
}

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

void TrustPolicy::add(const TrustPolicy& other) {
  if (this == &other) return;
  for (const Voice& voice : other.voices_) {
    for (const std::string& pattern : voice.patterns) trust(voice.key, pattern);
  }
  for (const auto& [pattern, epoch] : other.least_epochs_) require_epoch(pattern, epoch);
  unsigned_allowed_ = unsigned_allowed_ || other.unsigned_allowed_;
}

Status TrustPolicy::admit(const Statement& statement, const Signature* signature) const {
  const std::string& name = statement.name_space;
  // Its text is not repeated: it comes from outside, and may be anything.
  if (!is_name_space(name)) return refusal("what it gives as its namespace is none; it was not made by kiln");
  if (signature != nullptr) {
    if (Status status = admit_signature(statement, *signature); !status) return status;
  } else if (!unsigned_allowed_) {
    return refusal("nobody signed it; sign it with 'kiln bundle create --key', or allow it with trust.unsigned");
  }
  std::uint64_t least = 0;
  for (const auto& [pattern, epoch] : least_epochs_) {
    if (covers(pattern, name)) least = std::max(least, epoch);
  }
  if (statement.epoch >= least) return {};
  return refusal("it is too old: it has epoch " + std::to_string(statement.epoch) + ", and the trust policy wants " +
                 std::to_string(least) + " or later for '" + name + "'; get a newer one");
}

Status TrustPolicy::admit_signature(const Statement& statement, const Signature& signature) const {
  const std::string id = short_id(signature.key);
  const auto voice =
      std::find_if(voices_.begin(), voices_.end(), [&](const Voice& each) { return each.key.id() == signature.key; });
  if (voice == voices_.end()) {
    return refusal("it is signed with key " + id + ", which the trust policy does not know; if that key is to be " +
                   "believed, add it to the policy file");
  }
  const auto speaks = [&](const std::string& pattern) { return covers(pattern, statement.name_space); };
  if (std::none_of(voice->patterns.begin(), voice->patterns.end(), speaks)) {
    return refusal("key " + id + " may not speak for '" + statement.name_space +
                   "'; if it is to, add the namespace to the key in the policy file");
  }
  if (!verifies(voice->key, signature, statement)) {
    return refusal("its signature does not hold: it was changed after key " + id + " signed it, or that key signed " +
                   "something else; get it again from whoever made it");
  }
  return {};
}

}  // namespace kiln
