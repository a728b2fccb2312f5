// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <gtest/gtest.h>

namespace kiln {
namespace {

TEST(FirstLine, SkipsEmptyLines) {
  EXPECT_EQ(first_line("\n\none\ntwo\n"), "one");
  EXPECT_EQ(first_line("one"), "one");
  EXPECT_EQ(first_line("\n\n"), "");
  EXPECT_EQ(first_line(""), "");
}

TEST(ParseBoolean, AcceptsEightWordsInAnyCase) {
  for (const char* text : {"1", "true", "yes", "on", "True", "YES", "On"}) EXPECT_EQ(parse_boolean(text), true) << text;
  for (const char* text : {"0", "false", "no", "off", "False", "NO", "oFf"}) {
    EXPECT_EQ(parse_boolean(text), false) << text;
  }
}

TEST(ParseBoolean, RejectsAllElse) {
  for (const char* text : {"", "2", "10", "y", "n", "t", "f", "truer", "tru", " on", "off ", "0x1",
                           "\xd0\xbe"
                           "ff"}) {
    EXPECT_EQ(parse_boolean(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_boolean(std::string_view("on\0", 3)), std::nullopt);
}

TEST(InvalidValue, IsShortenedAndNamesValidValues) {
  EXPECT_EQ(invalid_value("perhaps", "on or off"), "invalid value 'perhaps'; use on or off");
  EXPECT_EQ(invalid_value(std::string(81, 'a'), "b"), "invalid value '" + std::string(80, 'a') + "...'; use b");
}

}  // namespace
}  // namespace kiln
