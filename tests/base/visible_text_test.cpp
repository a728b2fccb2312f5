// SPDX-License-Identifier: Apache-2.0
#include "base/visible_text.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(VisibleText, EscapesControlCharacters) {
  EXPECT_EQ(visible_text("a\x1b[2J\x07"), "a\\u001b[2J\\u0007");
  EXPECT_EQ(visible_text("\x7f\xc2\x9b|\x9b"), "\\u007f\\u009b|\\x9b");
  EXPECT_EQ(visible_text("\xe2\x80\xae\xe2\x81\xa6\xe2\x80\x8e\xd8\x9c\xe2\x80\xa8"),
            "\\u202e\\u2066\\u200e\\u061c\\u2028");
  EXPECT_EQ(visible_text(std::string_view("\0", 1)), "\\u0000");
}

TEST(VisibleText, KeepsOtherTextAndAllowedCharacters) {
  EXPECT_EQ(visible_text("größe 日本 🙂 \\ \""), "größe 日本 🙂 \\ \"");
  EXPECT_EQ(visible_text("a\n\tb\r"), "a\\u000a\\u0009b\\u000d");
  EXPECT_EQ(visible_text("a\n\tb\r", "\n\t"), "a\n\tb\\u000d");
}

TEST(VisibleText, EscapesInvalidUtf8) {
  EXPECT_EQ(visible_text("\xc0\x9b"), "\\xc0\\x9b") << "overlong";
  EXPECT_EQ(visible_text("\xe0\x80\x9b"), "\\xe0\\x80\\x9b") << "overlong";
  EXPECT_EQ(visible_text("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(visible_text("\xf5\x80\x80\x80"), "\\xf5\\x80\\x80\\x80") << "beyond Unicode";
  EXPECT_EQ(visible_text("\xe2\x80"), "\\xe2\\x80") << "truncated";
}

TEST(VisibleUrl, HidesUserAndPassword) {
  EXPECT_EQ(visible_url("https://cache.example/kiln"), "https://cache.example/kiln");
  EXPECT_EQ(visible_url("https://user:secret@cache.example/kiln"), "https://***@cache.example/kiln");
  EXPECT_EQ(visible_url("s3://key:se/cr@et@bucket"), "s3://***@bucket");
  EXPECT_EQ(visible_url("user:secret@cache.example"), "***@cache.example");
  EXPECT_EQ(visible_url("/mnt/a@b"), "/mnt/a@b");
  EXPECT_EQ(visible_url(""), "");
}

TEST(VisibleText, IsIdempotent) {
  const std::string once = visible_text("x\x1b\x9b\xe2\x80\xae");
  EXPECT_EQ(visible_text(once), once);
}

}  // namespace
}  // namespace kiln
