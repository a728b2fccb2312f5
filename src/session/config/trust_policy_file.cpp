#include "session/config/trust_policy_file.hpp"

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "session/config/protected_file.hpp"
#include "session/config/toml_reader.hpp"

namespace kiln {
namespace {

using Kind = TomlValue::Kind;

constexpr std::size_t kMaxTextLength = 1 << 20;
constexpr const char* kPatterns = "; use one such as \"acme/vision\", \"acme/*\" for all below it, or \"*\" for all";

/// Reads the tables of a policy file.
class TrustReader : private TomlReader {
 public:
  Result<TrustPolicy> read(const TomlValue& file);

 private:
  void key(const TomlValue& table);
  void live(const TomlValue& table);
  void epochs(const TomlValue& file);
  void revoked(const TomlValue& file);
  void external(const TomlValue& file);

  TrustPolicy policy_;
};

void TrustReader::key(const TomlValue& table) {
  check_keys(table, {"public", "namespaces"});
  if (table.find("public") == nullptr) return fail(table, "a key needs a 'public', as 'kiln key show' prints it");
  if (table.find("namespaces") == nullptr) {
    return fail(table, "a key needs 'namespaces' that it may sign for: [\"*\"] for all");
  }
  const std::string written = text(table, "public");
  const std::vector<std::string> patterns = texts(table, "namespaces");
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
  check_keys(table, {"namespace", "days"});
  const TomlValue* const days = table.find("days");
  if (table.find("namespace") == nullptr) {
    return fail(table, "a live namespace needs its 'namespace', such as \"acme/live\"");
  }
  if (days == nullptr) return fail(table, "a live namespace needs 'days': how long the content of a host is trusted");
  const std::string pattern = text(table, "namespace");
  if (error()) return;
  if (!is_live_pattern(pattern)) {
    return fail(*table.find("namespace"), "'" + pattern +
                                              "' is not a valid live namespace; use one such as \"acme/live\", or "
                                              "\"acme/live/*\" for all below it, but not \"*\"");
  }
  if (days->kind != Kind::Integer || days->integer < 1 || days->integer > static_cast<std::int64_t>(kMaxLiveDays)) {
    return fail(*days, "'days' must be a number from 1 to " + std::to_string(kMaxLiveDays));
  }
  policy_.trust_live_namespace(pattern, static_cast<std::uint64_t>(days->integer));
}

void TrustReader::revoked(const TomlValue& file) {
  const std::vector<std::string> keys = texts(file, "revoked");
  if (error()) return;
  for (std::size_t i = 0; i != keys.size(); ++i) {
    const Result<KeyId> key = parse_key_id(keys[i]);
    if (!key) return fail(file.find("revoked")->items[i], key.error().message);
    policy_.revoke(*key);
  }
}

void TrustReader::epochs(const TomlValue& file) {
  const TomlValue* const table = file.find("minimum_epoch");
  if (table == nullptr) return;
  if (table->kind != Kind::Table) return fail(*table, "'minimum_epoch' must be a table: [minimum_epoch]");
  for (const auto& [pattern, epoch] : table->fields) {
    if (!is_name_space_pattern(pattern)) return fail(epoch, "'" + pattern + "' is not a valid namespace" + kPatterns);
    if (epoch.kind == Kind::Table) return fail(epoch, "a namespace with dots must be in quotes");
    if (epoch.kind != Kind::Integer || epoch.integer < 0) return fail(epoch, "an epoch must be a number, 0 or more");
    policy_.require_epoch(pattern, static_cast<std::uint64_t>(epoch.integer));
  }
}

void TrustReader::external(const TomlValue& file) {
  const TomlValue* const value = file.find("foreign");
  if (value == nullptr) return;
  if (value->kind != Kind::Boolean) {
    return fail(*value, "'foreign' must be true or false: whether code that other systems compiled is trusted");
  }
  if (!value->boolean) policy_.reject_external();
}

Result<TrustPolicy> TrustReader::read(const TomlValue& file) {
  check_keys(file, {"key", "live", "minimum_epoch", "revoked", "foreign"});
  tables(file, "key", [&](const TomlValue& table) { key(table); });
  tables(file, "live", [&](const TomlValue& table) { live(table); });
  epochs(file);
  revoked(file);
  external(file);
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
  if (text.size() > kMaxTextLength) return make_error(Code::InvalidArgument, "the file is larger than 1 MiB");
  const Result<TomlValue> file = parse_toml(text);
  if (!file) return file.error();
  return TrustReader().read(*file);
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
    emitter.emit(Event::Kind::BundleRejected, "bundle", configured.error().message + "; no bundle file is trusted");
    return {};
  }
  policy.add(*configured);
  return policy;
}

}  // namespace kiln
