// SPDX-License-Identifier: Apache-2.0
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/clock.hpp"

namespace kiln {
namespace {

using std::chrono::seconds;

TEST(Json, ReportsPositionOfSyntaxError) {
  const auto parsed = parse_json(R"({"a": 1, b})", {8, 100});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "is not valid JSON at byte 10");
  EXPECT_EQ(parsed.error().code, Code::Corrupt);
}

TEST(Json, RejectsNumberOutsideDoubleRange) {
  const auto parsed = parse_json("[1e999]", {8, 100});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message, "contains a number that is out of range");
}

TEST(Json, EnforcesDepthLimit) {
  EXPECT_TRUE(parse_json("[[{}]]", {3, 100}));
  const auto deeper = parse_json("[[{}]]", {2, 100});
  ASSERT_FALSE(deeper);
  EXPECT_EQ(deeper.error().message, "is nested too deeply");
}

TEST(Json, EnforcesValueLimit) {
  EXPECT_TRUE(parse_json("[1, [2, \"a,b,c\"]]", {8, 5}));
  const auto more = parse_json("[{},{},{}]", {8, 5});
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "has more than 5 values");
}

TEST(Json, IgnoresBracketsInStrings) {
  EXPECT_TRUE(parse_json(R"(["[[[[", "\"[[[[", "\\"])", {1, 100}));
  EXPECT_FALSE(parse_json(R"(["\\", [[]]])", {2, 100}));
}

// A crafted text of a megabyte took a parser that compares each name with all earlier names a minute.
TEST(Json, ReadsLargeObjectQuickly) {
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":1";
  const auto before = system_clock().steady();
  const auto parsed = parse_json(text + "}", {1, 20'010});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->size(), 20'000U);
  EXPECT_LT(system_clock().steady() - before, seconds(30));
}

TEST(Json, MissingMemberIsNull) {
  const SortedJson object = {{"a", 1}};
  EXPECT_EQ(member_of(object, "a"), 1);
  EXPECT_TRUE(member_of(object, "b").is_null());
  EXPECT_TRUE(member_of(SortedJson::array(), "a").is_null());
}

TEST(Json, ReplacesInvalidUtf8WithoutException) {
  EXPECT_EQ(json_text(Json{{"path", "a\xff"}}), "{\"path\":\"a\xef\xbf\xbd\"}");
  EXPECT_EQ(json_text(SortedJson("\xff"), 2), "\"\xef\xbf\xbd\"");
}

TEST(Json, WritesInInsertionOrSortedOrder) {
  EXPECT_EQ(json_text(Json{{"b", 1}, {"a", 2}}), R"({"b":1,"a":2})");
  EXPECT_EQ(json_text(SortedJson{{"b", 1}, {"a", 2}}), R"({"a":2,"b":1})");
}

}  // namespace
}  // namespace kiln
