// SPDX-License-Identifier: Apache-2.0
#include "remote/packed_entry.hpp"

#include <gtest/gtest.h>

#include "base/hash.hpp"
#include "cache/entry_format.hpp"
#include "remote/action_result.hpp"
#include "remote/remote_store.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/remote_fixture.hpp"

namespace kiln::test {
namespace {

using Bucket = ObjectStore::Bucket;

// hostile_contents.cpp has the packed entries that readers reject.
class PackedEntryTest : public testing::Test {
 protected:
  RemoteStore store(std::shared_ptr<const Signer> signer) {
    return RemoteStore({.object_store = object_store_,
                        .policy = std::make_shared<const TrustPolicy>(trust_.policy()),
                        .signer = std::move(signer),
                        .emitter = {}});
  }
  RemoteStore ci() { return store(trust_.ci_signer()); }
  RemoteStore reader() { return store(nullptr); }
  std::string published() const { return object_store_->body(Bucket::Cas, object_store_->written()[0].second); }

  std::shared_ptr<MemoryObjectStore> object_store_ = std::make_shared<MemoryObjectStore>();
  TrustFixture trust_;
  const ArtifactKey key_ = key_number(1);
  const Artifact artifact_ = artifact_of(key_, 1'000);
};

TEST_F(PackedEntryTest, ContentIsCompressedAndReadBack) {
  const std::string text = [] {
    std::string lines;
    for (int i = 0; i < 2'000; ++i) lines += "add.s64 %rd" + std::to_string(i) + ", %rd1, %rd2;\n";
    return lines;
  }();
  Artifact ptx = artifact_;
  ptx.metadata.log.clear();
  ptx.bytes = Bytes::copy_of(text);
  ASSERT_TRUE(ci().put(key_, ptx, {}).has_value());
  const std::string content = published();
  EXPECT_LT(content.size(), text.size() / 4);
  EXPECT_EQ(sha256(content), object_store_->written()[0].second) << "the name is the digest of the compressed bytes";
  const auto action =
      ActionResult::decode(as_bytes(object_store_->body(Bucket::ActionCache, action_name("acme", key_))));
  EXPECT_EQ(action->files[0].size, content.size());
  const auto hit = reader().get(key_, {});
  ASSERT_TRUE(hit.has_value() && hit->has_value());
  EXPECT_TRUE(same((*hit)->artifact, ptx));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>((*hit)->artifact.bytes.data()) % 16, 0u);
}

TEST_F(PackedEntryTest, ContentThatCompressionDoesNotShrinkIsStoredAsEntry) {
  ASSERT_TRUE(ci().put(key_, artifact_of(key_, 10'000), {}).has_value());
  const std::string content = published();
  EXPECT_TRUE(content.starts_with("KILNENT1"));
  const auto hit = reader().get(key_, {});
  EXPECT_TRUE(hit.has_value() && hit->has_value());
}

// Servers hold entries that versions before the packed format published.
TEST_F(PackedEntryTest, UncompressedEntryOfCompressibleBytesIsRead) {
  Artifact zeros = artifact_;
  zeros.bytes = Bytes::copy_of(std::string(10'000, '\0'));
  const std::string entry = encode_entry_header(key_, zeros) + std::string(zeros.bytes.view());
  object_store_->set(Bucket::Cas, sha256(entry), entry);
  const auto stated = trust_.ci_signer()->sign(entry_subject(key_, false), sha256(entry), {});
  const ActionResult action{{{EntryPath{key_, false}.text(), sha256(entry), entry.size()}}, stated.encode()};
  object_store_->set(Bucket::ActionCache, action_name("acme", key_), action.encode());
  const auto hit = reader().get(key_, {});
  ASSERT_TRUE(hit.has_value() && hit->has_value());
  EXPECT_TRUE(same((*hit)->artifact, zeros));
}

TEST_F(PackedEntryTest, PackingIsDeterministicAndIsSkippedBeyondTheRatioThatReadersAccept) {
  const std::string entry = std::string(100'000, 'x');
  EXPECT_EQ(pack_entry(entry).value(), pack_entry(entry).value());
  EXPECT_LT(pack_entry(entry).value().size(), 200u);
  const std::string zeros(16 << 20, '\0');  // smaller than a thousandth when packed
  EXPECT_EQ(pack_entry(zeros).value(), zeros);
}

}  // namespace
}  // namespace kiln::test
