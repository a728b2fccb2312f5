// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/entry_pack.hpp"

#include <gtest/gtest.h>

#include "base/codec.hpp"

namespace kiln::test {
namespace {

using jit::EntryPack;
using jit::Rule;

EntryPack small() {
  return {Rule::Kind::Folder, {{"a", false, false, "one"}, {"b/c", true, true, std::string_view("t\0o", 3)}}};
}

// Encodes without the checks that callers of encode_pack make.
std::string packed(const std::vector<jit::PackedFile>& files, Rule::Kind kind = Rule::Kind::Folder) {
  return jit::encode_pack({kind, files});
}

TEST(JitPack, RoundTrips) {
  const std::string bytes = jit::encode_pack(small());
  const auto decoded = jit::decode_pack(bytes);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, small());
}

TEST(JitPack, RejectsEveryTruncationAndAddition) {
  const std::string bytes = jit::encode_pack(small());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(jit::decode_pack(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(jit::decode_pack(bytes + '\0'));
}

TEST(JitPack, RejectsUnsafePaths) {
  for (const char* path : {"", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".", "..", "a/.", "a\nb"})
    EXPECT_FALSE(jit::decode_pack(packed({{path, false, false, "x"}}))) << path;
  EXPECT_FALSE(jit::decode_pack(packed({{std::string(256, 'a'), false, false, "x"}})));
  EXPECT_FALSE(jit::decode_pack(packed({{std::string_view("a\0b", 3), false, false, "x"}})));
}

TEST(JitPack, RejectsPathsOfMoreThan32Components) {
  std::string path = "a";
  for (int i = 1; i < 32; ++i) path += "/a";
  EXPECT_TRUE(jit::decode_pack(packed({{path, false, false, "x"}})));
  EXPECT_FALSE(jit::decode_pack(packed({{path + "/a", false, false, "x"}})));
}

TEST(JitPack, RejectsDuplicatesDisorderAndFilesThatAreDirectories) {
  EXPECT_FALSE(jit::decode_pack(packed({{"a", false, false, ""}, {"a", false, false, ""}})));
  EXPECT_FALSE(jit::decode_pack(packed({{"b", false, false, ""}, {"a", false, false, ""}})));
  EXPECT_FALSE(
      jit::decode_pack(packed({{"a", false, false, ""}, {"a.b", false, false, ""}, {"a/c", false, false, ""}})));
  EXPECT_FALSE(jit::decode_pack(packed({})));
  EXPECT_FALSE(jit::decode_pack(packed({{"a/b", false, false, ""}}, Rule::Kind::File)));
}

TEST(JitPack, RejectsSizesThatExceedTheInput) {
  BinaryWriter out;
  out.raw("KILNJITE", 8).u32(1).u8(0).u32(1).text("a").u8(0).u64(~std::uint64_t{0});
  EXPECT_FALSE(jit::decode_pack(out.bytes()));
  BinaryWriter many;
  many.raw("KILNJITE", 8).u32(1).u8(0).u32(0xffffffff);
  EXPECT_FALSE(jit::decode_pack(many.bytes()));
}

TEST(JitPack, NamesAnotherVersion) {
  std::string bytes = jit::encode_pack(small());
  bytes[8] = 2;
  const auto decoded = jit::decode_pack(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::Unsupported);
}

TEST(JitPack, ReplacesAllOccurrences) {
  EXPECT_EQ(jit::replace_all("xaxbx", "x", "--"), "--a--b--");
  EXPECT_EQ(jit::replace_all("", "x", "--"), "");
  EXPECT_TRUE(jit::is_plain_root("/home/a-b/.cache"));
  for (const char* root : {"relative", "/", "/a\"b", "/a\\b", "/a b", "/a\nb"}) EXPECT_FALSE(jit::is_plain_root(root));
}

}  // namespace
}  // namespace kiln::test
