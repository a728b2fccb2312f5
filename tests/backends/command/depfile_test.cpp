// SPDX-License-Identifier: Apache-2.0
#include "backends/command/depfile.hpp"

#include <gtest/gtest.h>

namespace kiln::test {
namespace {

using Names = std::vector<std::string>;

TEST(Depfile, ReturnsPrerequisitesInOrder) {
  EXPECT_EQ(parse_depfile("out.o: a.cu b.h c.h\n").value(), (Names{"a.cu", "b.h", "c.h"}));
}

TEST(Depfile, JoinsContinuedLines) {
  EXPECT_EQ(parse_depfile("out.cubin : a.cu \\\n    /usr/b.h \\\n    /usr/c.h\n").value(),
            (Names{"a.cu", "/usr/b.h", "/usr/c.h"}));
  EXPECT_EQ(parse_depfile("out: a \\\r\n b\r\n").value(), (Names{"a", "b"}));
}

TEST(Depfile, UnescapesBlanksHashesAndDollars) {
  EXPECT_EQ(parse_depfile("o: a\\ b.h c\\#d.h e$$f.h g\\h.h\n").value(), (Names{"a b.h", "c#d.h", "e$f.h", "g\\h.h"}));
}

TEST(Depfile, AcceptsUnescapedHashesAndDollarsOfNvcc) {
  EXPECT_EQ(parse_depfile("o : k.cu \\\n    /a\\ b#c/h.h \\\n    #d.h \\\n    e$f.h\n").value(),
            (Names{"k.cu", "/a b#c/h.h", "#d.h", "e$f.h"}));
}

TEST(Depfile, HalvesBackslashesOnlyBeforeBlanks) {
  EXPECT_EQ(parse_depfile("o: a\\\\\\ b.h c\\\\d.h\n").value(), (Names{"a\\ b.h", "c\\\\d.h"}));
}

TEST(Depfile, MergesTargetsAndRulesWithoutDuplicates) {
  EXPECT_EQ(parse_depfile("o p: a.h b.h\n\n# a comment\na.h:\nb.h:\nq: b.h c.h").value(), (Names{"a.h", "b.h", "c.h"}));
}

TEST(Depfile, AcceptsColonsInNames) {
  EXPECT_EQ(parse_depfile("c:/o: c:/a.h x:y\n").value(), (Names{"c:/a.h", "x:y"}));
}

TEST(Depfile, IsEmptyForAnEmptyFile) { EXPECT_EQ(parse_depfile("").value(), Names{}); }

TEST(Depfile, RejectsInvalidRules) {
  for (const std::string& text : {std::string("some words\n"), std::string(": a.h\n"), std::string("o: a\0b\n", 7),
                                  "o: " + std::string(100'000, 'x')}) {
    const auto names = parse_depfile(text);
    ASSERT_FALSE(names.has_value()) << text.substr(0, 20);
    EXPECT_EQ(names.error().code, Code::Corrupt);
  }
}

}  // namespace
}  // namespace kiln::test
