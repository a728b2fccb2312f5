#include "session/trust_file.hpp"

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "session/guarded_file.hpp"
#include "session/toml_reader.hpp"

namespace kiln {
namespace {

using Kind = TomlValue::Kind;

constexpr std::size_t kMostText = 1 << 20;
constexpr const char* kPatterns = "; give one such as \"acme/vision\", \"acme/*\" for all below it, or \"*\" for all";

/// Reads the tables of a policy file.
class TrustReader : private TomlReader {
 public:
  Result<TrustPolicy> read(const TomlValue& file);

 private:
  void key(const TomlValue& table);
  void live(const TomlValue& table);
  void epochs(const TomlValue& file);
  void revoked(const TomlValue& file);

  TrustPolicy policy_;
};

void TrustReader::key(const TomlValue& table) {
  known(table, {"public", "namespaces"});
  if (table.find("public") == nullptr) return fail(table, "a key needs a 'public', as 'kiln key show' prints it");
  if (table.find("namespaces") == nullptr) {
    return fail(table, "a key needs 'namespaces', the ones that it may speak for: [\"*\"] for all");
  }
  const std::string written = text(table, "public");
  const std::vector<std::string> patterns = texts(table, "namespaces");
  if (error()) return;
  const Result<PublicKey> read = PublicKey::parse(written);
  if (!read) return fail(*table.find("public"), read.error().message);
  const TomlValue& list = *table.find("namespaces");
  if (patterns.empty()) return fail(list, "'namespaces' is empty, so the key could speak for none; leave the key out");
  for (std::size_t i = 0; i != patterns.size(); ++i) {
    if (!is_name_space_pattern(patterns[i]))
      return fail(list.items[i], "'" + patterns[i] + "' is no namespace" + kPatterns);
    policy_.trust(*read, patterns[i]);
  }
}

void TrustReader::live(const TomlValue& table) {
  known(table, {"namespace", "days"});
  const TomlValue* const days = table.find("days");
  if (table.find("namespace") == nullptr) {
    return fail(table, "a live namespace needs its 'namespace', such as \"acme/live\"");
  }
  if (days == nullptr) return fail(table, "a live namespace needs 'days': for how long a host's word counts");
  const std::string pattern = text(table, "namespace");
  if (error()) return;
  if (!is_live_pattern(pattern)) {
    return fail(*table.find("namespace"), "'" + pattern +
                                              "' is no live namespace; give one such as \"acme/live\", or "
                                              "\"acme/live/*\" for all below it, but not all there are");
  }
  if (days->kind != Kind::Integer || days->integer < 1 || days->integer > static_cast<std::int64_t>(kMostLiveDays)) {
    return fail(*days, "'days' is a number from 1 to " + std::to_string(kMostLiveDays));
  }
  policy_.accept_live(pattern, static_cast<std::uint64_t>(days->integer));
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
  if (table->kind != Kind::Table) return fail(*table, "'minimum_epoch' is a table: [minimum_epoch]");
  for (const auto& [pattern, epoch] : table->fields) {
    if (!is_name_space_pattern(pattern)) return fail(epoch, "'" + pattern + "' is no namespace" + kPatterns);
    if (epoch.kind == Kind::Table) return fail(epoch, "a namespace with dots in it is written in quotes");
    if (epoch.kind != Kind::Integer || epoch.integer < 0) return fail(epoch, "an epoch is a number, zero or more");
    policy_.require_epoch(pattern, static_cast<std::uint64_t>(epoch.integer));
  }
}

Result<TrustPolicy> TrustReader::read(const TomlValue& file) {
  known(file, {"key", "live", "minimum_epoch", "revoked"});
  tables(file, "key", [&](const TomlValue& table) { key(table); });
  tables(file, "live", [&](const TomlValue& table) { live(table); });
  epochs(file);
  revoked(file);
  if (error()) return *error();
  return std::move(policy_);
}

Status add_program_keys(TrustPolicy& policy, const Trust& program) {
  for (const Trust::Key& key : program.keys) {
    const auto parsed = PublicKey::parse(key.text);
    if (!parsed) return parsed.error();
    for (const std::string& pattern : key.namespaces) {
      if (!is_name_space_pattern(pattern)) {
        return failure(Code::InvalidArgument, "'" + pattern + "' is no namespace and no pattern of namespaces");
      }
      policy.trust(*parsed, pattern);
    }
  }
  for (const auto& [pattern, epoch] : program.minimum_epochs) policy.require_epoch(pattern, epoch);
  for (const auto& [pattern, days] : program.live) {
    if (!is_live_pattern(pattern) || days == 0 || days > kMostLiveDays) {
      return failure(Code::InvalidArgument, "'" + pattern + "' for " + std::to_string(days) +
                                                " days is no live namespace: it has a name, and 1 to 365 days");
    }
    policy.accept_live(pattern, days);
  }
  for (const std::string& text : program.revoked) {
    const auto key = parse_key_id(text);
    if (!key) return key.error();
    policy.revoke(*key);
  }
  return {};
}

}  // namespace

Result<TrustPolicy> parse_trust_policy(std::string_view text) {
  if (text.size() > kMostText) return failure(Code::InvalidArgument, "it has more than 1 MiB");
  const Result<TomlValue> file = parse_toml(text);
  if (!file) return file.error();
  return TrustReader().read(*file);
}

Result<TrustPolicy> read_trust_policy(const std::string& path) {
  const Result<std::optional<Bytes>> bytes = read_guarded_file(path);
  if (!bytes) return failure(bytes.error().code, path + ": " + bytes.error().message);
  if (!*bytes) return failure(Code::Io, "there is no policy file " + path);
  Result<TrustPolicy> policy = parse_trust_policy((*bytes)->view());
  if (!policy) return failure(policy.error().code, path + ": " + policy.error().message);
  return policy;
}

Result<TrustPolicy> configured_policy(const Config& config) {
  TrustPolicy policy;
  if (!config.trust.empty()) {
    Result<TrustPolicy> read = read_trust_policy(config.trust);
    if (!read) return read;
    policy = std::move(*read);
  }
  if (config.trust_unsigned) policy.allow_unsigned();
  return policy;
}

TrustPolicy trust_policy_of(const Trust& program, const Config& config, const Observer& observer) {
  TrustPolicy policy;
  if (const Status added = add_program_keys(policy, program); !added) {
    observer.tell(Event::Kind::BundleRefused, "bundle", "the program's policy: " + added.error().message);
    return {};
  }
  const Result<TrustPolicy> configured = configured_policy(config);
  if (!configured) {
    // Not the program's keys alone: the file may have been there to require a later epoch of them.
    observer.tell(Event::Kind::BundleRefused, "bundle",
                  configured.error().message + "; no bundle in a file is believed");
    return {};
  }
  policy.add(*configured);
  return policy;
}

}  // namespace kiln
