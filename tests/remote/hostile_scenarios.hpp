#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.hpp"
#include "remote/action_result.hpp"
#include "remote/judgement.hpp"
#include "remote/remote_store.hpp"
#include "store/entry_format.hpp"
#include "store/hint_format.hpp"
#include "support/artifacts.hpp"
#include "support/remote_rig.hpp"

namespace kiln::test {

inline std::string entry_file(const Key& key, const Artifact& artifact) {
  return encode_entry_head(key, artifact) + std::string(artifact.bytes.view());
}

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out += static_cast<char>(value);
}

inline std::string field(unsigned number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

/// An output file whose digest is any text and whose size is any number.
inline std::string file_field(const std::string& hash, std::uint64_t size) {
  return field(2, field(1, "entry") + field(2, field(1, hash) + "\x10" + varint(size)));
}

/// One key that a host asks for and one request, an honest entry and honest closures for both, and the means to serve
/// something else in their place.
struct Stage {
  using Shelf = Depot::Shelf;

  TrustRig trust;
  TrustPolicy policy = trust.policy();
  std::shared_ptr<MemoryDepot> depot = std::make_shared<MemoryDepot>();
  const Key key = key_number(1);
  const Key other_key = key_number(2);
  const RequestKey request = request_number(1);
  const std::string subject = entry_subject(key);
  const std::string entry = entry_file(key, artifact_of(key, 300));
  const Digest digest = sha256(entry);

  Stage() {
    content(entry);
    action(honest());
    hints({closure_number(1).encode()});
  }

  SignedStatement by(const SecretKey& signer, Statement statement) const {
    SignedStatement stated{std::move(statement), {}, {}};
    stated.signature = signer.sign(stated.statement);
    return stated;
  }
  SignedStatement ci() const { return by(trust.ci_key, {subject, "acme", TrustRig::kEpoch, digest}); }
  SignedStatement live(std::uint64_t day, std::optional<Certificate> certificate) const {
    SignedStatement stated = by(trust.host_key, {subject, "acme/live", day, digest});
    stated.certificate = std::move(certificate);
    return stated;
  }
  SignedStatement live() const { return live(trust.today, trust.certificate()); }

  ActionResult result(const std::string& said) const { return {{{"entry", digest, entry.size()}}, said}; }
  std::string honest() const { return result(ci().encode()).encode(); }

  void action(const std::string& body) { depot->set(Shelf::Action, key.digest, body); }
  void say(const std::string& said) { action(result(said).encode()); }
  void state(const SignedStatement& stated) { say(stated.encode()); }
  void content(const std::string& body) { depot->set(Shelf::Content, digest, body); }
  /// Something that a key of the policy signed though it is no entry of this key.
  void sign_content(const std::string& body) {
    const Digest named = sha256(body);
    depot->set(Shelf::Content, named, body);
    const auto stated = by(trust.ci_key, {subject, "acme", TrustRig::kEpoch, named});
    action(ActionResult{{{"entry", named, body.size()}}, stated.encode()}.encode());
  }
  void hint_body(const std::string& body) { depot->set(Shelf::Action, closures_place(request), body); }
  void hint_file(const std::string& file) { hint_body(ActionResult{{}, file}.encode()); }
  void hints(const std::vector<std::string>& closures) {
    const std::vector<std::string_view> views(closures.begin(), closures.end());
    hint_file(encode_hints(request, views));
  }
  void hint_naming(const std::string& name, std::uint16_t root = 0) {
    Closure closure = closure_number(1);
    closure.items[1].name = name;
    closure.items[1].root = root;
    hints({closure.encode()});
  }
};

/// What is asked for, and how far it may get.
enum class Reach { Action, Content, Hints };

struct Scenario {
  std::string name;
  std::string word;  ///< by which it is rejected
  Reach reach;
  std::function<void(Stage&)> plant;
};

/// What a server may serve in the place of what was published, by what is wrong with it.
std::vector<Scenario> action_scenarios();
std::vector<Scenario> statement_scenarios();
std::vector<Scenario> policy_scenarios();
std::vector<Scenario> content_scenarios();
std::vector<Scenario> hint_scenarios();
std::vector<Scenario> all_scenarios();

}  // namespace kiln::test
