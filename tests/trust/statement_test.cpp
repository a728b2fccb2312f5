// SPDX-License-Identifier: Apache-2.0
#include "trust/statement.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/hash.hpp"

namespace kiln::test {
namespace {

Statement some_statement() { return {"kiln bundle 1", "acme/vision", 7, sha256("content")}; }

TEST(Statement, EncodingMatchesGrammar) {
  const KeyId key{sha256("key")};
  const auto text = [](const std::string& value) {
    return std::string{static_cast<char>(value.size()), 0, 0, 0} + value;
  };
  const auto digest = [](const Digest& value) { return std::string(value.bytes.begin(), value.bytes.end()); };
  EXPECT_EQ(some_statement().encode(key), text("kiln statement 1") + text("kiln bundle 1") + text("acme/vision") +
                                              std::string("\7\0\0\0\0\0\0\0", 8) + digest(sha256("content")) +
                                              digest(key.digest));
}

TEST(Statement, EncodingCoversEveryField) {
  const KeyId key{sha256("key")};
  std::set<std::string> all = {some_statement().encode(key), some_statement().encode({sha256("another")})};
  Statement other = some_statement();
  other.subject = "kiln bundle 2";
  all.insert(other.encode(key));
  other = some_statement();
  other.name_space = "acme/visio";
  all.insert(other.encode(key));
  other = some_statement();
  other.epoch = 8;
  all.insert(other.encode(key));
  other = some_statement();
  other.digest = sha256("something else");
  all.insert(other.encode(key));
  // A letter moves from one field into the next.
  other = some_statement();
  other.subject = "kiln bundle 1a";
  other.name_space = "cme/vision";
  all.insert(other.encode(key));
  EXPECT_EQ(all.size(), 7U);
}

TEST(NameSpace, AcceptsLowerCasePartsBetweenSlashes) {
  for (const std::string& text :
       {std::string("acme"), std::string("acme/vision"), std::string("a/b/c-d_e.f/9"), std::string(64, 'a')}) {
    EXPECT_TRUE(is_name_space(text)) << text;
  }
  for (const std::string& text :
       {std::string(), std::string("/"), std::string("/acme"), std::string("acme/"), std::string("acme//vision"),
        std::string("Acme"), std::string("acme vision"), std::string("acme/*"), std::string("*"),
        std::string("acm\xc3\xa9"), std::string("acme\0", 5), std::string("acme\n"), std::string(65, 'a')}) {
    EXPECT_FALSE(is_name_space(text)) << text;
  }
}

}  // namespace
}  // namespace kiln::test
