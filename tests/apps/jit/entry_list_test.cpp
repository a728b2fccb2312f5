// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/entry_list.hpp"

#include <gtest/gtest.h>

#include "base/codec.hpp"
#include "base/hash.hpp"

namespace kiln::test {
namespace {

using jit::EntryList;

EntryList list_of(const std::vector<std::string>& paths) {
  EntryList list{"default", "system toy\n", "local", {}};
  for (const std::string& path : paths) list.lines.push_back({path, sha256(path), 7});
  return list;
}

TEST(JitList, RoundTrips) {
  const EntryList list = list_of({"a", "b/c", "d"});
  const auto decoded = EntryList::decode(list.encode());
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(*decoded, list);
  EXPECT_NE(decoded->find("b/c"), nullptr);
  EXPECT_EQ(decoded->find("b"), nullptr);
}

TEST(JitList, RejectsEveryTruncationAndAddition) {
  const std::string bytes = list_of({"a", "b"}).encode();
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(EntryList::decode(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(EntryList::decode(bytes + "x"));
}

TEST(JitList, RejectsHostileLines) {
  for (const char* path : {"../../etc/passwd", "/etc/passwd", "a/../b", "", "a//b", "./a", "a/"})
    EXPECT_FALSE(EntryList::decode(list_of({path}).encode())) << path;
  EXPECT_FALSE(EntryList::decode(list_of({"a", "a"}).encode()));
  EXPECT_FALSE(EntryList::decode(list_of({"b", "a"}).encode()));
}

TEST(JitList, RejectsMillionNames) {
  BinaryWriter out;
  out.raw("KILNJITL", 8).u32(1).text("p").text("e").text("local").u32(1'000'000);
  for (int i = 0; i < 1'000'000; ++i) out.text(std::to_string(1'000'000 + i)).digest({}).u64(0);
  EXPECT_FALSE(EntryList::decode(out.bytes()));
  BinaryWriter announced;
  announced.raw("KILNJITL", 8).u32(1).text("p").text("e").text("local").u32(1'000'000);
  EXPECT_FALSE(EntryList::decode(announced.bytes()));
}

TEST(JitList, NamesAnotherVersion) {
  std::string bytes = list_of({"a"}).encode();
  bytes[8] = 9;
  const auto decoded = EntryList::decode(bytes);
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, Code::Unsupported);
}

TEST(JitList, AddsLinesAndKeepsOrder) {
  EntryList list = list_of({"b"});
  EXPECT_TRUE(list.add(list_of({"c", "a"}).lines, false));
  ASSERT_EQ(list.lines.size(), 3U);
  EXPECT_EQ(list.lines[0].path, "a");
  EXPECT_FALSE(list.add(list_of({"a"}).lines, true)) << "an equal line changes nothing";
  const std::vector<EntryList::Line> other = {{"a", sha256("other"), 1}};
  EXPECT_FALSE(list.add(other, false));
  EXPECT_TRUE(list.add(other, true));
  EXPECT_EQ(list.find("a")->digest, sha256("other"));
}

TEST(JitList, KeysDifferByProfileEnvironmentAndPublisher) {
  const std::string key = jit::list_key("p", "e", "local");
  EXPECT_NE(key, jit::list_key("q", "e", "local"));
  EXPECT_NE(key, jit::list_key("p", "f", "local"));
  EXPECT_NE(key, jit::list_key("p", "e", "acme"));
}

}  // namespace
}  // namespace kiln::test
