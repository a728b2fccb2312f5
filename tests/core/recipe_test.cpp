// SPDX-License-Identifier: Apache-2.0
#include "core/recipe.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/hash.hpp"

namespace kiln::test {
namespace {

Recipe sample() {
  Recipe recipe{
      Unit::cuda("k.cu", "source").with_preamble("before").with_option("-a").with_include_root("/r", "/r/sentinel"),
      Target::sm(80),
      {},
      "/work"};
  recipe.unit = recipe.unit.with_include_root("r2").with_header("h.h", "content").with_entry("k<int>").with_entry("l");
  recipe.compiler = {"nvrtc", "13.0", "/lib/libnvrtc.so", sha256("compiler"), {{"A", "1"}, {"B", ""}}};
  return recipe;
}

TEST(Recipe, RoundTrips) {
  const std::string bytes = encode(sample());
  const Result<Recipe> back = decode_recipe(bytes);
  ASSERT_TRUE(back.has_value()) << back.error().message;
  EXPECT_EQ(back->request_key(), sample().request_key());
  EXPECT_EQ(back->unit.key(), sample().unit.key());
  EXPECT_EQ(back->unit.include_roots().at(0).path, "/r");
  EXPECT_EQ(back->unit.include_roots().at(0).sentinel, "/r/sentinel");
  EXPECT_EQ(back->compiler.version, "13.0");
  EXPECT_EQ(back->compiler.path, "/lib/libnvrtc.so");
  EXPECT_EQ(back->working_directory, "/work");
  EXPECT_EQ(encode(*back), bytes);
}

TEST(Recipe, RejectsTruncatedOrTrailingBytes) {
  const std::string bytes = encode(sample());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly that length, so that the address sanitizer detects a read past the end.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    const Result<Recipe> back = decode_recipe({cut.data(), cut.size()});
    ASSERT_FALSE(back.has_value()) << length;
    ASSERT_EQ(back.error().code, Code::Corrupt);
  }
  EXPECT_FALSE(decode_recipe(bytes + "x").has_value());
  EXPECT_FALSE(decode_recipe("\x7f" + bytes.substr(1)).has_value());
}

TEST(RequestKey, CoversUnitTargetAndCompilerButNotDisplayText) {
  std::set<RequestKey> keys;
  const auto add = [&](auto change) {
    Recipe recipe = sample();
    change(recipe);
    return keys.insert(recipe.request_key()).second;
  };
  EXPECT_TRUE(add([](Recipe&) {}));
  EXPECT_TRUE(add([](Recipe& r) { r.unit = r.unit.with_option("-b"); }));
  EXPECT_TRUE(add([](Recipe& r) { r.target = Target::sm(90); }));
  EXPECT_TRUE(add([](Recipe& r) { r.target.form = Form::Ptx; }));
  EXPECT_TRUE(add([](Recipe& r) { r.compiler.name = "other"; }));
  EXPECT_TRUE(add([](Recipe& r) { r.compiler.digest = sha256("other"); }));
  EXPECT_TRUE(add([](Recipe& r) { r.compiler.environment[1].second = "2"; }));
  EXPECT_TRUE(add([](Recipe& r) { r.compiler.environment.clear(); }));
  EXPECT_FALSE(add([](Recipe& r) { r.compiler.version = "for display"; }));
  EXPECT_FALSE(add([](Recipe& r) { r.compiler.path = "/elsewhere"; }));
  EXPECT_FALSE(add([](Recipe& r) { r.working_directory = "/elsewhere"; }));
}

TEST(Key, CoversRequestAndDependencySet) {
  const RequestKey request = sample().request_key();
  DependencySet dependency_set;
  const ArtifactKey none = artifact_key(request, dependency_set);
  dependency_set.items.push_back({0, DependencySet::State::Read, "h.h", sha256("1"), 0});
  const ArtifactKey one = artifact_key(request, dependency_set);
  dependency_set.items[0].digest = sha256("2");
  const ArtifactKey two = artifact_key(request, dependency_set);
  EXPECT_NE(none, one);
  EXPECT_NE(one, two);
  EXPECT_NE(artifact_key({sha256("other")}, dependency_set), two);
  EXPECT_EQ(artifact_key(request, dependency_set), two);
}

TEST(Metadata, RoundTripsAndRejectsTruncation) {
  Artifact artifact;
  artifact.target = Target::sm(90);
  artifact.entries = {{"k<int>", "_Z1kIiEvv"}, {"l", "l"}};
  artifact.metadata = {"k.cu", "nvrtc 13.0", 12.5, "a warning"};
  const std::string bytes = encode_metadata(artifact);
  const Result<Artifact> back = decode_metadata(bytes);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->target, artifact.target);
  EXPECT_EQ(back->entries, artifact.entries);
  EXPECT_EQ(back->metadata.cost_ms, 12.5);
  EXPECT_EQ(back->metadata.log, "a warning");
  EXPECT_EQ(*back->symbol("k<int>"), "_Z1kIiEvv");
  EXPECT_EQ(back->symbol("none"), nullptr);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    ASSERT_FALSE(decode_metadata({cut.data(), cut.size()}).has_value()) << length;
  }
}

}  // namespace
}  // namespace kiln::test
