#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/hash.hpp"
#include "fuzz_check.hpp"
#include "remote/action_result.hpp"
#include "remote/judgement.hpp"
#include "remote/remote_store.hpp"
#include "store/entry_format.hpp"

namespace {

using kiln::Bytes;
using kiln::Depot;
using kiln::Digest;
using kiln::fuzz::require;

// Serves one body on each shelf, whatever it is asked for.
class Liar final : public Depot {
 public:
  std::map<Shelf, std::string> bodies;

  kiln::Result<std::optional<Bytes>> read(Shelf shelf, const Digest&, std::uint64_t most, Time) override {
    const std::string& body = bodies[shelf];
    if (body.size() > most) return kiln::failure(kiln::Code::Corrupt, "too long");
    return std::optional<Bytes>(Bytes::copy_of(body));
  }
  kiln::Status write(Shelf, const Digest&, std::initializer_list<std::string_view>, Time) override { return {}; }
  kiln::Status remove(Shelf, const Digest&, Time) override { return {}; }
  kiln::Result<std::vector<Listed>> list(Shelf, Time) override { return std::vector<Listed>(); }
  kiln::Status probe(Time) override { return {}; }
  std::string describe() const override { return "a liar"; }
};

// A reader who believes one key, and what that key has signed.
struct Rig {
  kiln::SecretKey secret = kiln::SecretKey::generate();
  kiln::Key key{kiln::sha256("a key")};
  kiln::RequestKey request{kiln::sha256("a request")};
  std::shared_ptr<Liar> depot = std::make_shared<Liar>();
  std::string entry;
  std::string action;
  std::unique_ptr<kiln::RemoteStore> store;

  Rig() {
    kiln::TrustPolicy policy;
    policy.trust(secret.public_key(), "acme");
    store = std::make_unique<kiln::RemoteStore>(
        kiln::RemoteStore::Parts{.depot = depot,
                                 .policy = std::make_shared<const kiln::TrustPolicy>(std::move(policy)),
                                 .signer = nullptr,
                                 .observer = kiln::Observer([](const kiln::Event&) {})});
    kiln::Artifact artifact;
    artifact.target = kiln::Target::sm(80);
    artifact.bytes = Bytes::of("the bytes of a kernel");
    entry = kiln::encode_entry_head(key, artifact) + std::string(artifact.bytes.view());
    action = action_for(entry);
  }
  std::string action_for(const std::string& content) const {
    const Digest digest = kiln::sha256(content);
    kiln::SignedStatement stated{{kiln::entry_subject(key), "acme", 0, digest}, {}, {}};
    stated.signature = secret.sign(stated.statement);
    return kiln::ActionResult{{{kiln::kEntryFile, digest, content.size()}}, stated.encode()}.encode();
  }
  bool served(const std::string& action_body, const std::string& content) {
    depot->bodies = {{Depot::Shelf::Action, action_body}, {Depot::Shelf::Content, content}};
    const auto hit = store->get(key);
    return hit && hit->has_value();
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Rig rig;
  const std::string input(reinterpret_cast<const char*>(data), size);
  require(rig.served(rig.action, rig.entry), "what was signed is served");

  // Whatever is said in the place of the statement: only the one that was signed is believed. Fields that nobody knows
  // and sizes are not signed; the content is.
  const bool believed = rig.served(input, rig.entry);
  if (believed) {
    const auto read = kiln::ActionResult::decode(kiln::as_bytes(input));
    const auto honest = kiln::ActionResult::decode(kiln::as_bytes(rig.action));
    require(read && read->said == honest->said, "nothing is served that was not signed");
  }
  require(rig.served(rig.action, input) == (input == rig.entry), "no other content is served");
  // A signer who errs: what is no entry of this key is not served either.
  const bool is_entry = kiln::decode_entry(rig.key, Bytes::copy_of(input)).ok();
  require(rig.served(rig.action_for(input), input) == is_entry, "signed content is served where it is an entry");

  rig.depot->bodies = {{Depot::Shelf::Action, input}};
  if (const auto closures = rig.store->closures(rig.request)) {
    require(closures->size() <= kiln::Store::kMostClosures, "no more closures than any store keeps");
    for (const kiln::Closure& closure : *closures) require(may_travel(closure), "only closures that may travel");
  }
  return 0;
}
