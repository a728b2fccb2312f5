// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/codec.hpp"
#include "base/error.hpp"
#include "base/hash.hpp"
#include "cache/entry_format.hpp"
#include "fuzz_check.hpp"
#include "remote/action_result.hpp"
#include "remote/entry_verifier.hpp"
#include "remote/packed_entry.hpp"
#include "remote/remote_store.hpp"

namespace {

using kiln::Bytes;
using kiln::Digest;
using kiln::ObjectStore;
using kiln::fuzz::require;

// An object store that serves one object per bucket, whichever object is requested.
class Liar final : public ObjectStore {
 public:
  std::map<Bucket, std::string> bodies;

  kiln::Result<std::optional<Bytes>> read(Bucket pch_cache, const Digest&, std::uint64_t maximum,
                                          const kiln::Deadline&) override {
    const std::string& body = bodies[pch_cache];
    if (body.size() > maximum) return kiln::make_error(kiln::Code::Corrupt, "too long");
    return std::optional<Bytes>(Bytes::copy_of(body));
  }
  kiln::Status write(Bucket, const Digest&, std::initializer_list<std::string_view>, const kiln::Deadline&) override {
    return {};
  }
  kiln::Status remove(Bucket, const Digest&, const kiln::Deadline&) override { return {}; }
  kiln::Result<std::vector<ObjectInfo>> list(Bucket, const kiln::Deadline&) override {
    return std::vector<ObjectInfo>();
  }
  kiln::Status probe(const kiln::Deadline&) override { return {}; }
  std::string describe() const override { return "a fake object store"; }
};

// A reader that trusts one key, and the content that the key signed.
struct Fixture {
  kiln::SecretKey secret = kiln::SecretKey::generate();
  kiln::ArtifactKey key{kiln::sha256("a key")};
  kiln::RequestKey request{kiln::sha256("a request")};
  std::shared_ptr<Liar> object_store = std::make_shared<Liar>();
  std::string entry;
  std::string action;
  std::unique_ptr<kiln::RemoteStore> store;

  Fixture() {
    kiln::TrustPolicy policy;
    policy.add_key(secret.public_key(), "acme");
    store = std::make_unique<kiln::RemoteStore>(
        kiln::RemoteStore::Params{.object_store = object_store,
                                  .policy = std::make_shared<const kiln::TrustPolicy>(std::move(policy)),
                                  .signer = nullptr,
                                  .emitter = kiln::EventEmitter([](const kiln::Event&) {})});
    kiln::Artifact artifact;
    artifact.target = kiln::Target::sm(80);
    artifact.bytes = Bytes::of("the bytes of a kernel");
    entry = kiln::encode_entry_header(key, artifact) + std::string(artifact.bytes.view());
    action = action_for(entry);
  }
  std::string action_for(const std::string& content) const {
    const Digest digest = kiln::sha256(content);
    kiln::SignedStatement stated{{kiln::entry_subject(key), "acme", 0, digest}, {}, {}};
    stated.signature = secret.sign(stated.statement);
    return kiln::ActionResult{{{kiln::EntryPath{key}.text(), digest, content.size()}}, stated.encode()}.encode();
  }
  bool served(const std::string& action_body, const std::string& content) {
    object_store->bodies = {{ObjectStore::Bucket::ActionCache, action_body}, {ObjectStore::Bucket::Cas, content}};
    const auto hit = store->get(key, {});
    return hit && hit->has_value();
  }
};

// The statement does not state an external form.
bool is_entry_of(const kiln::ArtifactKey& key, const kiln::Result<Bytes>& entry) {
  if (!entry) return false;
  const auto decoded = kiln::decode_entry(key, *entry);
  return decoded && decoded->target.form != kiln::Form::External;
}

// Any frame behind a valid header of a packed entry: it is refused, or it has exactly the stated size. A packed entry
// is unpacked to the same bytes.
void check_packed(const kiln::ArtifactKey& key, const std::string& input) {
  if (input.size() < 2) return;
  const std::uint64_t size = kiln::BinaryReader(input).u16();
  const std::string head = kiln::BinaryWriter().raw("KILNPCK1", 8).u32(1).u64(size).bytes();
  const auto unpacked = kiln::unpack_entry(Bytes::copy_of(head + input.substr(2)));
  require(!unpacked || unpacked->size() == size, "an unpacked entry has the stated size");
  (void)is_entry_of(key, unpacked);
  const auto packed = kiln::pack_entry(input);
  require(packed.has_value() && packed->size() <= input.size(), "packing does not enlarge");
  const auto again = kiln::unpack_entry(Bytes::copy_of(*packed));
  const bool is_no_entry = input.size() < kiln::EntryHeader::kSize || input.starts_with("KILNPCK1");
  require(is_no_entry || (again && again->view() == input), "a packed entry is unpacked to the same bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Fixture fixture;
  const std::string input(reinterpret_cast<const char*>(data), size);
  require(fixture.served(fixture.action, fixture.entry), "signed content is served");

  // For any input in place of the statement, only the signed statement is trusted. Unknown fields and sizes are not
  // signed; the content is.
  const bool trusted = fixture.served(input, fixture.entry);
  if (trusted) {
    const auto read = kiln::ActionResult::decode(kiln::as_bytes(input));
    const auto honest = kiln::ActionResult::decode(kiln::as_bytes(fixture.action));
    require(read && read->stdout_raw == honest->stdout_raw, "only signed content is served");
  }
  require(fixture.served(fixture.action, input) == (input == fixture.entry), "no other content is served");
  // A faulty signer: signed content that is not an entry of this key is not served either.
  const bool is_entry = is_entry_of(fixture.key, kiln::unpack_entry(Bytes::copy_of(input)));
  require(fixture.served(fixture.action_for(input), input) == is_entry, "signed content is served if it is an entry");

  check_packed(fixture.key, input);

  fixture.object_store->bodies = {{ObjectStore::Bucket::ActionCache, input}};
  if (const auto dependency_sets =
          fixture.store->dependency_sets(fixture.request, kiln::Store::kMaxDependencySets, {})) {
    require(dependency_sets->size() <= kiln::Store::kMaxDependencySets, "at most kMostClosures dependency sets");
    for (const kiln::DependencySet& dependency_set : *dependency_sets)
      require(is_portable(dependency_set), "only portable dependency sets");
  }
  return 0;
}
