// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "cache/entry_format.hpp"
#include "cache/hint_format.hpp"
#include "remote/action_result.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/remote_store.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/remote_fixture.hpp"

namespace kiln::test {

inline std::string entry_file(const ArtifactKey& key, const Artifact& artifact) {
  return encode_entry_header(key, artifact) + std::string(artifact.bytes.view());
}

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out += static_cast<char>(value);
}

inline std::string field(unsigned number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

/// An output file with any text as its digest and any size.
inline std::string file_field(const std::string& hash, std::uint64_t size) {
  return field(2, field(1, EntryPath{key_number(1)}.text()) + field(2, field(1, hash) + "\x10" + varint(size)));
}

/// One requested key and one request, with a valid entry and valid dependency sets, and functions to replace them.
struct Stage {
  using Bucket = ObjectStore::Bucket;

  TrustFixture trust;
  TrustPolicy policy = trust.policy();
  std::shared_ptr<MemoryObjectStore> object_store = std::make_shared<MemoryObjectStore>();
  const ArtifactKey key = key_number(1);
  const ArtifactKey other_key = key_number(2);
  const RequestKey request = request_number(1);
  const std::string subject = entry_subject(key);
  const std::string path = EntryPath{key}.text();
  const std::string entry = entry_file(key, artifact_of(key, 300));
  const Digest digest = sha256(entry);

  Stage() {
    content(entry);
    action(honest());
    hints({dependency_set_number(1).encode()});
  }

  SignedStatement by(const SecretKey& signer, Statement statement) const {
    SignedStatement stated{std::move(statement), {}, {}};
    stated.signature = signer.sign(stated.statement);
    return stated;
  }
  SignedStatement ci() const { return by(trust.ci_key, {subject, "acme", TrustFixture::kEpoch, digest}); }
  SignedStatement live(std::uint64_t day, std::optional<Certificate> certificate) const {
    SignedStatement stated = by(trust.host_key, {subject, "acme/live", day, digest});
    stated.certificate = std::move(certificate);
    return stated;
  }
  SignedStatement live() const { return live(trust.today, trust.certificate()); }

  ActionResult result(const std::string& said) const { return {{{path, digest, entry.size()}}, said}; }
  std::string honest() const { return result(ci().encode()).encode(); }

  void action(const std::string& body) { object_store->set(Bucket::ActionCache, action_name("acme", key), body); }
  /// Stores an action under the name of a live host, without a release entry.
  void live_action(const std::string& body) {
    (void)object_store->remove(Bucket::ActionCache, action_name("acme", key), std::chrono::seconds(1));
    object_store->set(Bucket::ActionCache, action_name("acme/live", key), body);
  }
  void say(const std::string& said) { action(result(said).encode()); }
  void state(const SignedStatement& stated) { say(stated.encode()); }
  void content(const std::string& body) { object_store->set(Bucket::Cas, digest, body); }
  /// Stores content that a trusted key signed although it is not an entry of this key.
  void sign_content(const std::string& body) {
    const Digest named = sha256(body);
    object_store->set(Bucket::Cas, named, body);
    const auto stated = by(trust.ci_key, {subject, "acme", TrustFixture::kEpoch, named});
    action(ActionResult{{{path, named, body.size()}}, stated.encode()}.encode());
  }
  void hint_body(const std::string& body) { object_store->set(Bucket::ActionCache, hints_digest(request), body); }
  void hint_file(const std::string& file) { hint_body(ActionResult{{}, file}.encode()); }
  void hints(const std::vector<std::string>& dependency_sets) {
    const std::vector<std::string_view> views(dependency_sets.begin(), dependency_sets.end());
    hint_file(encode_hints(request, views));
  }
  void hint_naming(const std::string& name, std::uint16_t root = 0) {
    DependencySet dependency_set = dependency_set_number(1);
    dependency_set.items[1].name = name;
    dependency_set.items[1].root = root;
    hints({dependency_set.encode()});
  }
};

/// The kind of lookup, and how far it may get.
enum class Reach { Action, Content, Hints };

struct Scenario {
  std::string name;
  std::string word;  ///< expected rejection reason
  Reach reach;
  std::function<void(Stage&)> plant;
};

/// Data that a server may return instead of the published data, grouped by the fault.
std::vector<Scenario> action_scenarios();
std::vector<Scenario> statement_scenarios();
std::vector<Scenario> policy_scenarios();
std::vector<Scenario> content_scenarios();
std::vector<Scenario> packed_scenarios();
std::vector<Scenario> hint_scenarios();
std::vector<Scenario> all_scenarios();

}  // namespace kiln::test
