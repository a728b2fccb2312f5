// SPDX-License-Identifier: Apache-2.0
// Corrupt bundles of lists and entries, and hostile ones with a trusted signature.
#include <gtest/gtest.h>

#include "apps/jit/jit_fixture.hpp"
#include "apps/kiln/jit/entry_pack.hpp"
#include "base/codec.hpp"
#include "base/hash.hpp"
#include "bundle/bundle.hpp"
#include "bundle/bundle_writer.hpp"

namespace kiln::test {
namespace {

class JitHostileBundle : public JitFixture {
 protected:
  static BundleMember member(const std::string& key, const std::string& bytes) {
    BundleMember made;
    made.kind = to_string(Form::External);
    made.key = ArtifactKey::external("jit.toy", key);
    made.unit = {made.key.digest};
    made.compiler = "jit.toy";
    made.artifact.bytes = Bytes::of(bytes);
    made.artifact.target = Target::external("jit.toy");
    made.artifact.metadata.unit = "toy";
    return made;
  }
  static BundleMember entry_of(const std::string& bytes) { return member(jit::entry_key(sha256(bytes)), bytes); }
  BundleMember list_of_bytes(const std::string& bytes) const {
    return member(jit::list_key("default", system().environment, "local"), bytes);
  }
  BundleMember list_member(const std::vector<jit::EntryList::Line>& lines) const {
    return list_of_bytes(jit::EntryList{"default", system().environment, "local", lines}.encode());
  }
  std::string signed_bundle(const std::vector<BundleMember>& members) const {
    BundleWriter writer({"acme/jit", 1, {}});
    for (const BundleMember& each : members) EXPECT_TRUE(writer.add(each));
    auto image = writer.finish(&key_);
    EXPECT_TRUE(image);
    return image ? image->to_file() : std::string();
  }
  // Fills `to_` from a bundle whose signature is trusted.
  jit::FillReport fill_from(const std::string& bundle) {
    const std::string file = room_.path("toy" + std::to_string(++bundles_) + ".kiln");
    write_text(file, bundle);
    write_text(room_.path("policy.toml"),
               "[[key]]\npublic = \"" + key_.public_key().text() + "\"\nnamespaces = [\"acme/jit\"]\n");
    Session reader = session(room_.path("cache"), {{"bundles", file}, {"trust.policy", room_.path("policy.toml")}});
    return fill(reader, system(), to_);
  }

  const SecretKey key_ = SecretKey::generate();
  int bundles_ = 0;
  const std::string to_ = room_.path("root/to");
  const std::string good_ =
      jit::encode_pack({jit::Rule::Kind::Folder, {{"done", false, false, ""}, {"kernel.bin", false, false, "code"}}});
};

TEST_F(JitHostileBundle, EveryFlippedByteAndTruncationGivesTheSameBytesOrNone) {
  std::vector<jit::EntryList::Line> lines = {{"00aa", sha256(good_), good_.size()}};
  for (int i = 0; i < 84; ++i) lines.push_back({"0f" + std::to_string(10 + i), sha256(std::to_string(i)), 1});
  const BundleMember list = list_member(lines);
  ASSERT_GT(list.artifact.bytes.size(), 4000U);
  const std::string bytes = signed_bundle({list, entry_of(good_)});
  TrustPolicy policy;
  policy.add_key(key_.public_key(), "acme/jit");
  std::size_t served = 0;
  const auto check = [&](const std::string& changed) {
    const auto opened = Bundle::open(bundle_in_memory(Bytes::of(changed), "changed"), &policy);
    if (!opened) return true;
    for (const BundleMember& each : {list, entry_of(good_)}) {
      const auto hit = (*opened)->get(each.key, {});
      if (!hit || !*hit) continue;
      ++served;
      if ((*hit)->artifact.bytes.view() != each.artifact.bytes.view()) return false;
    }
    return true;
  };
  ASSERT_TRUE(check(bytes));
  ASSERT_EQ(served, 2U) << "the unchanged bundle has both";
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at % 8)));
    ASSERT_TRUE(check(changed)) << "byte " << at;
    served = 0;
    ASSERT_TRUE(check(bytes.substr(0, at))) << "the first " << at;
    ASSERT_EQ(served, 0U) << "the first " << at;
  }
  EXPECT_EQ(fill_from(bytes).count(Filled::Placed), 1U);
}

TEST_F(JitHostileBundle, SignedPathsOutsideTheRootAreNotWritten) {
  const auto line = [&](const std::string& path) { return jit::EntryList::Line{path, sha256(good_), good_.size()}; };
  for (const char* path : {"../escaped", "/tmp/kiln-escaped", "00aa/../../escaped", "00aa/", ""}) {
    const auto report = fill_from(signed_bundle({list_member({line(path)}), entry_of(good_)}));
    EXPECT_TRUE(report.entries.empty()) << path;
    EXPECT_EQ(report.problems.size(), 1U) << path;
  }
  for (const char* path : {"../../escaped", "/tmp/kiln-escaped", "a/../../../escaped"}) {
    const std::string hostile = jit::encode_pack({jit::Rule::Kind::Folder, {{path, false, false, "x"}}});
    const auto list = list_member({{"00aa", sha256(hostile), hostile.size()}});
    EXPECT_EQ(fill_from(signed_bundle({list, entry_of(hostile)})).count(Filled::Rejected), 1U) << path;
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/kiln-escaped"));
  EXPECT_FALSE(std::filesystem::exists(room_.path("escaped")));
  EXPECT_FALSE(std::filesystem::exists(room_.path("root/escaped")));
  EXPECT_EQ(count_below(to_), 0U);
}

TEST_F(JitHostileBundle, SignedEntriesDoNotFollowLinksOfTheRoot) {
  rules_.front().entries = {*jit::PathPattern::parse("sub/[0-9a-f]{4}")};
  make_root(to_);
  make_root(room_.path("outside"));
  std::filesystem::create_directory_symlink(room_.path("outside"), to_ + "/sub");
  const auto list = list_member({{"sub/00aa", sha256(good_), good_.size()}});
  EXPECT_EQ(fill_from(signed_bundle({list, entry_of(good_)})).count(Filled::Placed), 0U);
  EXPECT_EQ(count_below(room_.path("outside")), 0U);
}

TEST_F(JitHostileBundle, SignedListsOfAMillionNamesAndOversizedEntriesPlaceNothing) {
  BinaryWriter names;
  names.raw("KILNJITL", 8).u32(1).text("default").text(system().environment).text("local").u32(1'000'000);
  for (int i = 0; i < 1'000'000; ++i) names.text(std::to_string(1'000'000 + i)).digest(sha256(good_)).u64(good_.size());
  const auto many = fill_from(signed_bundle({list_of_bytes(names.bytes()), entry_of(good_)}));
  EXPECT_TRUE(many.entries.empty());
  EXPECT_EQ(many.problems.size(), 1U);
  const auto large = list_member({{"00aa", sha256(good_), std::uint64_t{1} << 40}});
  EXPECT_EQ(fill_from(signed_bundle({large, entry_of(good_)})).count(Filled::LeftOut), 1U);
  const auto other = list_member({{"00aa", sha256(good_), good_.size() + 1}});
  EXPECT_EQ(fill_from(signed_bundle({other, entry_of(good_)})).count(Filled::Rejected), 1U);
  EXPECT_EQ(count_below(to_), 0U);
}

}  // namespace
}  // namespace kiln::test
