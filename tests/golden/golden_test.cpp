// Caches, bundles and remote entries of an earlier version of kiln are hits: formats, hashed strings and signed strings
// are the same. tests/golden/data was written by the commit that added this test, with KILN_TEST_GOLDEN_WRITE set to
// the directory. A change that breaks this test empties every user's cache.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <kiln/session.hpp>

#include "base/hash.hpp"
#include "cache/disk_store.hpp"
#include "cache/local_claims.hpp"
#include "core/recipe.hpp"
#include "core/unit_access.hpp"
#include "engine/resolver.hpp"
#include "remote/directory_object_store.hpp"
#include "remote/remote_store.hpp"
#include "support/fakes/fake_compiler.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/bundles.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/recipes.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "trust/keys.hpp"
#include "trust/policy.hpp"
#include "trust/signer.hpp"

namespace kiln::test {
namespace {

const std::string kData = std::string(KILN_SOURCE_DIR) + "/tests/golden/data";
constexpr std::uint64_t kEpoch = 7;

/// The directory to write to, or null to check.
const char* write_to() { return std::getenv("KILN_TEST_GOLDEN_WRITE"); }

class Golden : public testing::Test {
 protected:
  Golden() {
    if (write_to() != nullptr) return;
    // A copy, so that usage records and locks do not change the tree.
    std::filesystem::copy(kData, copy_.path(), std::filesystem::copy_options::recursive);
  }
  std::string path(const std::string& name) const { return write_to() ? write_to() + ("/" + name) : copy_.path(name); }

  TemporaryDirectory copy_;
};

CompilerIdentity compiler() {
  CompilerIdentity identity;
  identity.name = "nvrtc";
  identity.version = "13.0.88";
  identity.digest = sha256("a compiler");
  return identity;
}

std::vector<Unit> units() {
  const LinkPart part = LinkPart::ltoir("lto", Bytes::copy_of("bytes of a part"));
  return {
      Unit::cuda("k.cu", "__global__ void k() {}").with_option("-DN=3").with_entry("k"),
      Unit::cuda("t.cu", "#include \"t.h\"").with_include_root("/include", "version.txt").with_entry("t<float>"),
      Unit::opencl("k.cl", "kernel void k() {}").with_option("-cl-fast-relaxed-math"),
      Unit::link("linked", {part}),
      Unit::command("n.cu", "int n;", {"nvcc", "-cubin", "{source}", "-o", "{output}"}),
      Unit::of_kind("cccl", "radix_sort_u64_i32", "{\"algorithm\":\"radix_sort\"}"),
  };
}

TEST_F(Golden, UnitKeysAndRequestKeysAreUnchanged) {
  std::string keys;
  for (const Unit& unit : units()) {
    keys += "unit " + unit.kind() + " " + UnitAccess::identity(unit).hex() + "\n";
    for (const Target& target : {Target::sm(90), Target{"compute_80", Form::Ptx}}) {
      const Recipe recipe{unit, target, compiler(), "/work"};
      keys += "request " + target.name() + " " + recipe.request_key().hex() + "\n";
      keys += "artifact " + artifact_key(recipe.request_key(), dependency_set_number(1)).hex() + "\n";
    }
  }
  keys +=
      "external " + ArtifactKey::external("triton", "k").hex() + " " + RequestKey::external("triton", "k").hex() + "\n";
  if (write_to() != nullptr) write_text(path("keys.txt"), keys);
  EXPECT_EQ(read_text(path("keys.txt")), keys);
}

TEST_F(Golden, CacheDirectoryHits) {
  if (write_to() != nullptr) {
    std::filesystem::create_directories(path("include"));
    write_text(path("include/h.h"), "text of a header");
  }
  auto store = DiskStore::open({.root = path("cache")}).value();
  FileDigestCache digests{std::string()};
  Resolver::Params parts;
  parts.store = store.get();
  parts.digests = &digests;
  parts.compile_allowed = write_to() != nullptr;
  Resolver resolver(parts);
  FakeCompiler fake;
  for (const std::string source : {"a", "include h.h"}) {
    Recipe recipe =
        recipe_for(fake, Unit::of_kind("fake", "unit", source).with_include_root(path("include")), Target::sm(80));
    recipe.self_contained = fake.is_self_contained(recipe);
    const auto result = resolver.get(recipe, fake, {});
    ASSERT_TRUE(result.has_value()) << source << ": " << result.error().message;
    EXPECT_EQ(result->artifact.bytes.view(), source == "a" ? "compiled a" : "compiled text of a header");
  }
}

TEST_F(Golden, ExternalCacheHits) {
  SessionOptions options;
  options.settings = {{"cache.dir", path("cache")}};
  const auto cache = Session::open(std::move(options))->external_cache("triton");
  if (write_to() != nullptr) {
    ASSERT_TRUE(cache.put("k", Bytes::copy_of("code of another system")).has_value());
  }
  const auto found = cache.get("k");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->bytes.view(), "code of another system");
}

TEST_F(Golden, SignedBundleHits) {
  const std::vector<BundleMember> members = {
      member_of("one", Target::sm(80), {.size = 300, .dependency_set = dependency_set_number(1)}),
      member_of("two", Target::sm(90), {.size = 3000, .packs = true})};
  if (write_to() != nullptr) {
    const SecretKey key = SecretKey::generate();
    write_text(path("bundle.key"), key.public_key().text());
    BundleWriter::Options options;
    options.name_space = "acme";
    options.epoch = kEpoch;
    write_text(path("units.kiln"), image_of(members, &key, options).to_file());
  }
  TrustPolicy policy;
  policy.add_key(PublicKey::parse(read_text(path("bundle.key"))).value(), "acme");
  policy.require_epoch("acme", kEpoch);
  auto bundle = open_bytes(read_text(path("units.kiln")), &policy);
  ASSERT_TRUE(bundle.has_value()) << bundle.error().message;
  EXPECT_TRUE((*bundle)->verify().has_value());
  for (const BundleMember& member : members) {
    const auto found = (*bundle)->find(member.unit, member.artifact.target);
    ASSERT_TRUE(found.has_value() && found->has_value());
    EXPECT_EQ((*found)->artifact.bytes, member.artifact.bytes);
    EXPECT_EQ((*found)->key, member.key);
  }
}

TEST_F(Golden, RemoteEntryHits) {
  RemoteStore::Params parts;
  if (write_to() != nullptr) {
    SecretKey key = SecretKey::generate();
    write_text(path("remote.key"), key.public_key().text());
    std::filesystem::create_directories(path("remote"));
    parts.signer = std::make_shared<const Signer>(Signer::ci(std::move(key), "acme", kEpoch).value());
  }
  TrustPolicy policy;
  policy.add_key(PublicKey::parse(read_text(path("remote.key"))).value(), "acme");
  policy.require_epoch("acme", kEpoch);
  parts.policy = std::make_shared<const TrustPolicy>(std::move(policy));
  parts.object_store = std::make_shared<DirectoryObjectStore>(path("remote"));
  RemoteStore store(parts);
  const DependencySet dependency_set = dependency_set_number(1);
  const ArtifactKey key = artifact_key(request_number(1), dependency_set);
  const Artifact artifact = artifact_of(key, 700);
  if (write_to() != nullptr) {
    ASSERT_TRUE(store.put(key, artifact, {}).has_value());
    ASSERT_TRUE(store.add_dependency_set(request_number(1), dependency_set, {}).has_value());
  }
  const auto hit = store.get(key, {});
  ASSERT_TRUE(hit.has_value() && hit->has_value());
  EXPECT_EQ((*hit)->artifact.bytes, artifact.bytes);
  const auto sets = store.dependency_sets(request_number(1), Store::kMaxDependencySets, {});
  ASSERT_TRUE(sets.has_value());
  ASSERT_EQ(sets->size(), 1u);
  EXPECT_EQ(artifact_key(request_number(1), sets->front()), key);
}

}  // namespace
}  // namespace kiln::test
