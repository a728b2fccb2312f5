// SPDX-License-Identifier: Apache-2.0
#include "session/config/trust_policy_file.hpp"

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "session/config/member_reader.hpp"

namespace kiln {
namespace {

using Kind = TomlValue::Kind;

constexpr const char* kPatterns = "; use one such as \"acme/vision\", \"acme/*\" for all below it, or \"*\" for all";
constexpr Format kKeys = {.valid = "a list of tables: [[key]]"};
constexpr Format kLiveTables = {.valid = "a list of tables: [[live]]"};
constexpr Format kEpochs = {.valid = "a table: [minimum_epoch]"};
constexpr Format kEpoch = {.valid = "a number, 0 or more"};
constexpr Format kDays = {.valid = "a number from 1 to 365", .least = 1, .most = kMaxLiveDays};
constexpr Format kForeign = {.valid = "true or false: whether code that other systems compiled is trusted"};

/// Reads the tables of a policy file.
class TrustReader : private TableReader {
 public:
  Result<TrustPolicy> read_policy(const TomlValue& file);

 private:
  void key(const TomlValue& table);
  void live(const TomlValue& table);
  void epochs(const TomlValue& table);

  TrustPolicy policy_;
};

void TrustReader::key(const TomlValue& table) {
  std::string written;
  std::vector<std::string> patterns;
  read(table, {{"public", &written, kTextFormat, "add the key as 'kiln key show' prints it"},
               {"namespaces", &patterns, kTextListFormat, "list those that the key may sign for: [\"*\"] for all"}});
  if (error()) return;
  const Result<PublicKey> read = PublicKey::parse(written);
  if (!read) return fail(*table.find("public"), read.error().message);
  const TomlValue& list = *table.find("namespaces");
  if (patterns.empty()) return fail(list, "'namespaces' is empty, so the key can sign for nothing; remove the key");
  for (std::size_t i = 0; i != patterns.size(); ++i) {
    if (!is_name_space_pattern(patterns[i]))
      return fail(list.items[i], "'" + patterns[i] + "' is not a valid namespace" + kPatterns);
    policy_.add_key(*read, patterns[i]);
  }
}

void TrustReader::live(const TomlValue& table) {
  std::string pattern;
  std::uint64_t days = 0;
  read(table, {{"namespace", &pattern, kTextFormat, "name the live namespace, such as \"acme/live\""},
               {"days", &days, kDays, "state for how many days the content of a host is trusted"}});
  if (error()) return;
  if (!is_live_pattern(pattern)) {
    return fail(*table.find("namespace"), "'" + pattern +
                                              "' is not a valid live namespace; use one such as \"acme/live\", or "
                                              "\"acme/live/*\" for all below it, but not \"*\"");
  }
  policy_.trust_live_namespace(pattern, days);
}

void TrustReader::epochs(const TomlValue& table) {
  for (const auto& [pattern, value] : table.fields) {
    if (!is_name_space_pattern(pattern)) return fail(value, "'" + pattern + "' is not a valid namespace" + kPatterns);
    if (value.kind == Kind::Table) return fail(value, "a namespace with dots must be in quotes");
    std::uint64_t epoch = 0;
    read_member(value, {pattern, &epoch, kEpoch});
    policy_.require_epoch(pattern, epoch);
  }
}

Result<TrustPolicy> TrustReader::read_policy(const TomlValue& file) {
  std::vector<const TomlValue*> keys;
  std::vector<const TomlValue*> live_tables;
  const TomlValue* minimum_epochs = nullptr;
  std::vector<std::string> revoked;
  bool external = true;
  read(file, {{"key", &keys, kKeys},
              {"live", &live_tables, kLiveTables},
              {"minimum_epoch", &minimum_epochs, kEpochs},
              {"revoked", &revoked, kTextListFormat},
              {"foreign", &external, kForeign}});
  for (const TomlValue* const table : keys) key(*table);
  for (const TomlValue* const table : live_tables) live(*table);
  if (minimum_epochs != nullptr) epochs(*minimum_epochs);
  for (std::size_t i = 0; i != revoked.size(); ++i) {
    const Result<KeyId> id = parse_key_id(revoked[i]);
    if (id) policy_.revoke(*id);
    if (!id) fail(file.find("revoked")->items[i], id.error().message);
  }
  if (!external) policy_.reject_external();
  if (error()) return *error();
  return std::move(policy_);
}

Status add_program_policy(TrustPolicy& policy, const TrustOptions& program) {
  for (const TrustOptions::Key& key : program.keys) {
    const auto parsed = PublicKey::parse(key.text);
    if (!parsed) return parsed.error();
    for (const std::string& pattern : key.namespaces) {
      if (!is_name_space_pattern(pattern)) {
        return make_error(Code::InvalidArgument, "'" + pattern + "' is not a valid namespace or pattern");
      }
      policy.add_key(*parsed, pattern);
    }
  }
  for (const auto& [pattern, epoch] : program.minimum_epochs) policy.require_epoch(pattern, epoch);
  for (const auto& [pattern, days] : program.live_namespaces) {
    if (!is_live_pattern(pattern) || days == 0 || days > kMaxLiveDays) {
      return make_error(Code::InvalidArgument,
                        "'" + pattern + "' for " + std::to_string(days) +
                            " days is not a valid live namespace: it needs a name and 1 to 365 days");
    }
    policy.trust_live_namespace(pattern, days);
  }
  if (program.reject_external) policy.reject_external();
  for (const std::string& text : program.revoked) {
    const auto key = parse_key_id(text);
    if (!key) return key.error();
    policy.revoke(*key);
  }
  return {};
}

}  // namespace

Result<TrustPolicy> parse_trust_policy(std::string_view text) {
  const Result<TomlValue> file = parse_toml(text);
  if (!file) return file.error();
  return TrustReader().read_policy(*file);
}

Result<TrustPolicy> read_trust_policy(const std::string& path) {
  const Result<std::optional<Bytes>> bytes = read_protected_file(path);
  if (!bytes) return make_error(bytes.error().code, path + ": " + bytes.error().message);
  if (!*bytes) return make_error(Code::Io, "there is no policy file " + path);
  Result<TrustPolicy> policy = parse_trust_policy((*bytes)->view());
  if (!policy) return make_error(policy.error().code, path + ": " + policy.error().message);
  return policy;
}

Result<TrustPolicy> configured_policy(const Config& config) {
  TrustPolicy policy;
  if (!config.trust_policy.empty()) {
    Result<TrustPolicy> read = read_trust_policy(config.trust_policy);
    if (!read) return read;
    policy = std::move(*read);
  }
  if (config.trust_unsigned) policy.allow_unsigned();
  return policy;
}

TrustPolicy make_trust_policy(const TrustOptions& program, const Config& config, const EventEmitter& emitter) {
  TrustPolicy policy;
  if (const Status added = add_program_policy(policy, program); !added) {
    emitter.emit(Event::Kind::BundleRejected, "bundle", "the program's policy: " + added.error().message);
    return {};
  }
  const Result<TrustPolicy> configured = configured_policy(config);
  if (!configured) {
    // Returns no keys at all, not the program's keys alone: the file may exist to require a later epoch of them.
    emitter.emit(Event::Kind::BundleRejected, "bundle", "no bundle file is trusted: " + configured.error().message);
    return {};
  }
  policy.add(*configured);
  return policy;
}

}  // namespace kiln
