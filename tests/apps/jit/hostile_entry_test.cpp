// SPDX-License-Identifier: Apache-2.0
// Corrupt and hostile lists and entries: nothing is placed outside the rule, and nothing partial is visible.
#include <gtest/gtest.h>

#include <algorithm>

#include "apps/jit/jit_fixture.hpp"
#include "apps/kiln/jit/entry_pack.hpp"
#include "base/hash.hpp"
#include "cache/disk_store.hpp"

namespace kiln::test {
namespace {

namespace fs = std::filesystem;
using jit::EntryList;

class JitHostile : public JitFixture {
 protected:
  // Stores a list and entries as a publisher with write access to the cache can.
  void store(Session& session, const EntryList& list) {
    DiskStore::Options options;
    options.root = room_.path("cache");
    auto disk = DiskStore::open(std::move(options));
    ASSERT_TRUE(disk);
    Artifact artifact;
    artifact.bytes = Bytes::of(list.encode());
    artifact.target = Target::external("jit.toy");
    const std::string key = jit::list_key(list.profile, list.environment, list.publisher);
    ASSERT_TRUE((*disk)->put(ArtifactKey::external("jit.toy", key), artifact, {}));
    (void)session;
  }
  EntryList list_of(const std::vector<EntryList::Line>& lines) const {
    return {"default", system().environment, "local", lines};
  }
  Digest put(Session& session, const std::string& bytes) {
    const Digest digest = sha256(bytes);
    EXPECT_TRUE(session.external_cache("jit.toy").put(jit::entry_key(digest), Bytes::of(bytes)));
    return digest;
  }
  static std::string pack_of(std::vector<jit::PackedFile> files) {
    files.push_back({"done", false, false, ""});
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return jit::encode_pack({jit::Rule::Kind::Folder, files});
  }

  const std::string to_ = room_.path("to");
};

TEST_F(JitHostile, FlippedAndTruncatedFilesPlaceNothing) {
  // A list of 4 KB and a small entry, in the cache.
  Session both = session(room_.path("cache"));
  const std::string bytes = pack_of({{"kernel.bin", false, false, "code"}});
  const Digest digest = put(both, bytes);
  std::vector<EntryList::Line> lines = {{"00aa", digest, bytes.size()}};
  for (int i = 0; i < 60; ++i) lines.push_back({"0f" + std::to_string(10 + i), sha256(std::to_string(i)), 1});
  std::sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  store(both, list_of(lines));
  std::vector<std::string> files;
  for (const auto& each : fs::recursive_directory_iterator(room_.path("cache/v1/entries"))) {
    if (each.is_regular_file()) files.push_back(each.path().string());
  }
  ASSERT_EQ(files.size(), 2U);
  ASSERT_EQ(fill(both, system(), room_.path("good")).count(Filled::Placed), 1U);
  const auto expect_nothing = [&](const std::string& file, const std::string& damaged, std::size_t at) {
    write_text(file, damaged);
    const auto report = fill(both, system(), to_);
    ASSERT_EQ(report.count(Filled::Placed), 0U) << file << " byte " << at;
    ASSERT_FALSE(fs::exists(to_ + "/00aa")) << file << " byte " << at;
  };
  for (const std::string& file : files) {
    const std::string good = read_text(file);
    for (std::size_t at = 0; at < good.size(); ++at) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
      ASSERT_NO_FATAL_FAILURE(expect_nothing(file, damaged, at));
      ASSERT_NO_FATAL_FAILURE(expect_nothing(file, good.substr(0, at), at));
    }
    write_text(file, good);
  }
  EXPECT_EQ(fill(both, system(), to_).count(Filled::Placed), 1U) << "the undamaged files work";
}

TEST_F(JitHostile, ContentOtherThanTheDigestIsNotPlaced) {
  Session both = session(room_.path("cache"));
  const std::string bytes = pack_of({{"kernel.bin", false, false, "code"}});
  // A valid packed entry under the key of another digest.
  const Digest other = sha256("other");
  ASSERT_TRUE(both.external_cache("jit.toy").put(jit::entry_key(other), Bytes::of(bytes)));
  store(both, list_of({{"00aa", other, bytes.size()}}));
  EXPECT_EQ(fill(both, system(), to_).count(Filled::Missing), 1U);
  EXPECT_FALSE(fs::exists(to_ + "/00aa"));
}

TEST_F(JitHostile, PathsOutsideTheRootAreNotWritten) {
  Session both = session(room_.path("cache"));
  const std::string bytes = pack_of({{"kernel.bin", false, false, "code"}});
  const Digest digest = put(both, bytes);
  for (const char* path : {"../escaped", "/tmp/kiln-escaped", "a/../../escaped"}) {
    store(both, list_of({{path, digest, bytes.size()}}));
    EXPECT_TRUE(fill(both, system(), to_).entries.empty()) << path;
  }
  store(both, list_of({{"other-name", digest, bytes.size()}}));
  EXPECT_EQ(fill(both, system(), to_).count(Filled::Rejected), 1U) << "the rule has no such entry";
  const std::string escape = pack_of({{"../../escaped", false, false, "code"}});
  store(both, list_of({{"00aa", put(both, escape), escape.size()}}));
  EXPECT_EQ(fill(both, system(), to_).count(Filled::Rejected), 1U);
  EXPECT_FALSE(fs::exists(room_.path("escaped")));
  EXPECT_EQ(count_below(to_), 0U);
}

TEST_F(JitHostile, ListsForOtherEnvironmentsUnderThisKeyAreNotUsed) {
  Session both = session(room_.path("cache"));
  const std::string bytes = pack_of({{"kernel.bin", false, false, "code"}});
  EntryList list = list_of({{"00aa", put(both, bytes), bytes.size()}});
  DiskStore::Options options;
  options.root = room_.path("cache");
  auto disk = DiskStore::open(std::move(options));
  Artifact artifact;
  artifact.target = Target::external("jit.toy");
  const auto key = ArtifactKey::external("jit.toy", jit::list_key("default", list.environment, "local"));
  list.publisher = "acme/vision";
  artifact.bytes = Bytes::of(list.encode());
  ASSERT_TRUE((*disk)->put(key, artifact, {}));
  const auto report = fill(both, system(), to_);
  EXPECT_TRUE(report.entries.empty());
  EXPECT_EQ(report.problems.size(), 1U);
}

TEST_F(JitHostile, EntriesThatBreakTheRuleAreRejected) {
  Session both = session(room_.path("cache"));
  const auto state = [&](const std::string& bytes, std::uint64_t size) {
    store(both, list_of({{"00aa", put(both, bytes), size}}));
    return fill(both, system(), to_).entries.at(0).state;
  };
  const std::string lacks = jit::encode_pack({jit::Rule::Kind::Folder, {{"kernel.bin", false, false, "x"}}});
  EXPECT_EQ(state(lacks, lacks.size()), Filled::Rejected) << "a required file is missing";
  const std::string left_out = pack_of({{"x.lock", false, false, "x"}});
  EXPECT_EQ(state(left_out, left_out.size()), Filled::Rejected);
  const std::string rewritten = pack_of({{"kernel.bin", false, true, "x"}});
  EXPECT_EQ(state(rewritten, rewritten.size()), Filled::Rejected) << "the rule rewrites another file only";
  const std::string large(std::size_t{1} << 19, '@');
  const std::string grows = pack_of({{"a/paths.json", false, true, large}, {"b/paths.json", false, true, large + "x"}});
  EXPECT_EQ(state(grows, grows.size()), Filled::Rejected) << "the rewritten files are too large";
  const std::string single = jit::encode_pack({jit::Rule::Kind::File, {{"00aa", false, false, "x"}}});
  EXPECT_EQ(state(single, single.size()), Filled::Rejected) << "another kind";
  const std::string good = pack_of({{"kernel.bin", false, false, "x"}});
  EXPECT_EQ(state(good, good.size() + 1), Filled::Rejected) << "the list states another size";
  EXPECT_EQ(state(good, std::uint64_t{1} << 40), Filled::LeftOut) << "oversized";
  EXPECT_EQ(count_below(to_), 0U);
}

TEST_F(JitHostile, LinksInTheRootAreNotFollowed) {
  rules_.front().entries = {*jit::PathPattern::parse("sub/[0-9a-f]{4}")};
  Session both = session(room_.path("cache"));
  const std::string bytes = pack_of({{"kernel.bin", false, false, "code"}});
  store(both, list_of({{"sub/00aa", put(both, bytes), bytes.size()}}));
  make_root(to_);
  make_root(room_.path("outside"));
  fs::create_directory_symlink(room_.path("outside"), to_ + "/sub");
  EXPECT_EQ(fill(both, system(), to_).count(Filled::Placed), 0U);
  EXPECT_EQ(count_below(room_.path("outside")), 0U);
}

}  // namespace
}  // namespace kiln::test
