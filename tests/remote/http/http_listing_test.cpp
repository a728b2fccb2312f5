// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "base/clock.hpp"
#include "remote/http/http_listing.hpp"

namespace kiln {
namespace {

const std::string kName(64, 'a');
const std::string kRow =
    R"({ "name":")" + kName + R"(", "type":"file", "mtime":"Sun, 15 Nov 2026 21:53:31 GMT", "size":1439 })";

TEST(HttpListing, ParsesNginxRows) {
  const auto rows = parse_listing("[\n" + kRow + ",\n" + kRow + "\n]");
  ASSERT_TRUE(rows.has_value());
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].name.hex(), kName);
  EXPECT_EQ((*rows)[0].bytes, 1439u);
  EXPECT_EQ(format_utc((*rows)[0].modified), "2026-11-15T21:53:31Z");
  EXPECT_TRUE(parse_listing("[]")->empty());
}

TEST(HttpListing, SkipsDirectoriesAndOtherNames) {
  const auto rows = parse_listing(R"([{"name":"notes.txt","type":"file","size":1},{"name":")" + kName +
                                  R"(","type":"directory"},{"name":"..","type":"file"},{},{"name":5,"type":true}])");
  ASSERT_TRUE(rows.has_value());
  EXPECT_TRUE(rows->empty());
}

TEST(HttpListing, IgnoresFieldsOfWrongType) {
  const auto rows = parse_listing(R"([{"name":")" + kName + R"(","type":"file","size":-5,"mtime":null,"owner":1.5}])");
  ASSERT_TRUE(rows.has_value());
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ((*rows)[0].bytes, 0u);
  EXPECT_EQ((*rows)[0].modified.count(), 0);
  for (const char* text : {"[null]", "[-1]", "[1.5]"}) EXPECT_FALSE(parse_listing(text).has_value()) << text;
}

TEST(HttpListing, RejectsOtherText) {
  for (const std::string& text : {std::string(), std::string("<html>"), std::string("{}"), kRow, std::string("5"),
                                  "[" + kRow, "[" + kRow + "] []", std::string("[5]"), std::string("[[]]"),
                                  "[{\"a\":" + kRow + "}]", std::string(1 << 20, '[')}) {
    EXPECT_FALSE(parse_listing(text).has_value()) << text.substr(0, 100);
  }
}

TEST(HttpListing, InvalidDateIsZero) {
  EXPECT_EQ(format_utc(parse_http_date("Sat, 29 Feb 2020 00:00:00 GMT")), "2020-02-29T00:00:00Z");
  for (const char* text :
       {"", "Sun, 29 Feb 2021 00:00:00 GMT", "Sun, 15 Nov 2026 24:00:00 GMT", "Sun, 15 anF 2026 21:53:31 GMT",
        "Sun, 15 Nov 9999 21:53:31 GMT", "Sun, -5 Nov 2026 21:53:31 GMT", "Sun, 15 Nov 2026 21:53:31 CET"}) {
    EXPECT_EQ(parse_http_date(text).count(), 0) << text;
  }
}

}  // namespace
}  // namespace kiln
