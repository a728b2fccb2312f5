// SPDX-License-Identifier: Apache-2.0
#include "apps/kiln/jit/rule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace kiln::test {
namespace {

using jit::PathPattern;

PathPattern pattern(const std::string& text) {
  auto parsed = PathPattern::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : PathPattern();
}

TEST(JitPattern, MatchesWholePathsWithinComponents) {
  EXPECT_TRUE(pattern("[0-9a-f]{4}").matches("0aF9" + std::string()) == false);
  EXPECT_TRUE(pattern("[0-9a-f]{4}").matches("0af9"));
  EXPECT_FALSE(pattern("[0-9a-f]{4}").matches("0af"));
  EXPECT_FALSE(pattern("[0-9a-f]{4}").matches("0af91"));
  EXPECT_TRUE(pattern("wp_*_[0-9a-f]{7}").matches("wp_a_b_0123456"));
  EXPECT_TRUE(pattern("a/*/c?").matches("a/b/cd"));
  EXPECT_FALSE(pattern("a/*").matches("a/b/c"));
  EXPECT_FALSE(pattern("*").matches("a/b"));
  EXPECT_TRUE(pattern("x{3}y").matches("xxxy"));
  EXPECT_TRUE(pattern("*.json").matches_file("deep/below/a.json"));
  EXPECT_FALSE(pattern("below/*.json").matches_file("deep/below/a.json"));
}

TEST(JitPattern, TakesBoundedTimeForManyStars) {
  EXPECT_FALSE(pattern("*a*a*a*a*a*a*a*a*a*a*a*a*b").matches(std::string(255, 'a')));
}

TEST(JitPattern, RejectsWhatIsNotARelativePath) {
  for (const char* text : {"", "/a", "a/", "a//b", "../a", "a/../b", ".", "a/./b", "[]", "[a", "[z-a]", "a{0}",
                           "a{999}", "a{", "*{2}", "}", "a\nb"}) {
    EXPECT_FALSE(PathPattern::parse(text)) << text;
  }
}

TEST(JitVersion, ComparesReleases) {
  const auto in = [](const char* range, const char* version) {
    const auto release = jit::parse_release(version);
    return release && jit::VersionRange::parse(range)->contains(*release);
  };
  EXPECT_TRUE(in(">=3.4, <3.10", "3.9.1"));
  EXPECT_FALSE(in(">=3.4, <3.10", "3.10.0"));
  EXPECT_TRUE(in("==3.9", "3.9.0+cu12"));
  EXPECT_TRUE(in("<=1.2", "1.2.post1"));
  EXPECT_TRUE(in(">1", "1.0.1"));
  EXPECT_FALSE(in(">1", "1.0"));
}

TEST(JitVersion, CoversNoPreRelease) {
  for (const char* version : {"3.9.0rc1", "3.9.0.dev5", "", "x", "1..2", "3.9a"}) {
    EXPECT_FALSE(jit::parse_release(version)) << version;
  }
}

TEST(JitVersion, RejectsMalformedRanges) {
  for (const char* text : {"", "3.9", "~=3.9", ">=", ">=3.9rc1", ">=3,,<4"}) {
    EXPECT_FALSE(jit::VersionRange::parse(text)) << text;
  }
}

TEST(JitRules, BuiltInRulesAreValid) {
  const auto rules = jit::load_rules("");
  ASSERT_TRUE(rules) << rules.error().message;
  std::set<std::string> systems;
  for (const jit::Rule& rule : *rules) systems.insert(rule.system);
  EXPECT_TRUE(systems.contains("triton"));
  EXPECT_TRUE(systems.contains("tilelang"));
}

const std::string kGood =
    "[[rule]]\nsystem = \"toy\"\nversions = \">=1\"\ndistributions = [\"toy\"]\nroot = \"~/.toy\"\n"
    "entries = [\"a\"]\nevidence = \"run\"\n";

TEST(JitRules, ParsesAllMembers) {
  const auto rules = jit::parse_rules(
      kGood +
          "variable = \"TOY\"\nsubdirectory = \"v1\"\nwhole = [\"b\"]\nnever = [\"c\"]\nrewrite = [\"d\"]\n"
          "host_code = true\nkind = \"folder\"\n",
      "toy.toml");
  ASSERT_TRUE(rules) << rules.error().message;
  const jit::Rule& rule = rules->front();
  EXPECT_TRUE(rule.host_code);
  EXPECT_EQ(rule.root_for("", "/home/a"), "/home/a/.toy");
  EXPECT_EQ(rule.root_for("/data//toy/", "/home/a"), "/data/toy/v1");
  EXPECT_TRUE(rule.is_entry("a"));
}

TEST(JitRules, RejectsInvalidRulesWithTheirPosition) {
  const std::pair<const char*, const char*> bad[] = {
      {"unknown = 1\n", "unknown"},
      {"variable = \"toy\"\n", "variable"},
      {"subdirectory = \"x\"\n", "subdir"},
      {"whole = [\"../x\"]\n", "whole"},
      {"kind = \"link\"\n", "kind"},
      {"host_code = 3\n", "host_code"},
      {"kind = \"file\"\nwhole = [\"x\"]\n", "whole"},
  };
  for (const auto& [line, word] : bad) {
    const auto rules = jit::parse_rules(kGood + line, "toy.toml");
    ASSERT_FALSE(rules) << line;
    EXPECT_NE(rules.error().message.find("toy.toml"), std::string::npos) << rules.error().message;
    EXPECT_NE(rules.error().message.find(word), std::string::npos) << rules.error().message;
  }
  for (const char* missing : {"system", "versions", "distributions", "root", "entries", "evidence"}) {
    std::string text = kGood;
    const std::size_t at = text.find(missing);
    text.erase(at, text.find('\n', at) + 1 - at);
    EXPECT_FALSE(jit::parse_rules(text, "toy.toml")) << missing;
  }
  EXPECT_FALSE(jit::parse_rules(kGood + kGood, "toy.toml")) << "two rules for the same versions";
  EXPECT_FALSE(jit::parse_rules("", "toy.toml"));
  EXPECT_FALSE(jit::parse_rules("[[rule", "toy.toml"));
  EXPECT_FALSE(jit::parse_rules("rule = [1]", "toy.toml"));
}

TEST(JitRules, RejectsRootsOutsideTheHomeDirectory) {
  for (const char* root : {"/etc", "~", "~/../b", "toy", "~/"}) {
    std::string text = kGood;
    text.replace(text.find("~/.toy"), 6, root);
    EXPECT_FALSE(jit::parse_rules(text, "toy.toml")) << root;
  }
}

}  // namespace
}  // namespace kiln::test
