#include "core/recipe.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/hash.hpp"

namespace kiln::test {
namespace {

Recipe sample() {
  Recipe recipe{Unit::cuda("k.cu", "source").preamble("before").option("-a").include_root("/r", "/r/seal"),
                Target::sm(80),
                {},
                "/work"};
  recipe.unit = recipe.unit.include_root("r2").header("h.h", "content").entry("k<int>").entry("l");
  recipe.compiler = {"nvrtc", "13.0", "/lib/libnvrtc.so", sha256("compiler"), {{"A", "1"}, {"B", ""}}};
  return recipe;
}

TEST(Recipe, ComesBackWholeFromItsBytes) {
  const std::string bytes = encode(sample());
  const Result<Recipe> back = decode_recipe(bytes);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->request_key(), sample().request_key());
  EXPECT_EQ(back->unit.key(), sample().unit.key());
  EXPECT_EQ(back->unit.include_roots().at(0).path, "/r");
  EXPECT_EQ(back->unit.include_roots().at(0).seal, "/r/seal");
  EXPECT_EQ(back->compiler.version, "13.0");
  EXPECT_EQ(back->compiler.path, "/lib/libnvrtc.so");
  EXPECT_EQ(back->working_directory, "/work");
  EXPECT_EQ(encode(*back), bytes);
}

TEST(Recipe, IsRefusedWhereverItIsCutAndWithSomethingBehindIt) {
  const std::string bytes = encode(sample());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // A copy of exactly that length, so that the address sanitizer sees a read beyond it.
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    const Result<Recipe> back = decode_recipe({cut.data(), cut.size()});
    ASSERT_FALSE(back.ok()) << length;
    ASSERT_EQ(back.error().code, Code::Corrupt);
  }
  EXPECT_FALSE(decode_recipe(bytes + "x").ok());
  EXPECT_FALSE(decode_recipe("\x7f" + bytes.substr(1)).ok());
}

TEST(RequestKey, CoversUnitTargetAndCompilerAndNotWhatIsForPeople) {
  std::set<RequestKey> keys;
  const auto add = [&](auto change) {
    Recipe recipe = sample();
    change(recipe);
    return keys.insert(recipe.request_key()).second;
  };
  EXPECT_TRUE(add([](Recipe&) {}));
  EXPECT_TRUE(add([](Recipe& r) { r.unit = r.unit.option("-b"); }));
  EXPECT_TRUE(add([](Recipe& r) { r.target = Target::sm(90); }));
  EXPECT_TRUE(add([](Recipe& r) { r.target.form = Form::Ptx; }));
  EXPECT_TRUE(add([](Recipe& r) { r.compiler.name = "other"; }));
  EXPECT_TRUE(add([](Recipe& r) { r.compiler.digest = sha256("other"); }));
  EXPECT_TRUE(add([](Recipe& r) { r.compiler.environment[1].second = "2"; }));
  EXPECT_TRUE(add([](Recipe& r) { r.compiler.environment.clear(); }));
  EXPECT_FALSE(add([](Recipe& r) { r.compiler.version = "for people"; }));
  EXPECT_FALSE(add([](Recipe& r) { r.compiler.path = "/elsewhere"; }));
  EXPECT_FALSE(add([](Recipe& r) { r.working_directory = "/elsewhere"; }));
}

TEST(Key, CoversTheRequestAndTheClosure) {
  const RequestKey request = sample().request_key();
  Closure closure;
  const Key none = key_of(request, closure);
  closure.items.push_back({0, Closure::State::Read, "h.h", sha256("1"), 0});
  const Key one = key_of(request, closure);
  closure.items[0].digest = sha256("2");
  const Key two = key_of(request, closure);
  EXPECT_NE(none, one);
  EXPECT_NE(one, two);
  EXPECT_NE(key_of({sha256("other")}, closure), two);
  EXPECT_EQ(key_of(request, closure), two);
}

TEST(Metadata, ComesBackWholeAndIsRefusedWhereverItIsCut) {
  Artifact artifact;
  artifact.target = Target::sm(90);
  artifact.entries = {{"k<int>", "_Z1kIiEvv"}, {"l", "l"}};
  artifact.about = {"k.cu", "nvrtc 13.0", 12.5, "a warning"};
  const std::string bytes = encode_metadata(artifact);
  const Result<Artifact> back = decode_metadata(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->target, artifact.target);
  EXPECT_EQ(back->entries, artifact.entries);
  EXPECT_EQ(back->about.cost_ms, 12.5);
  EXPECT_EQ(back->about.log, "a warning");
  EXPECT_EQ(*back->symbol("k<int>"), "_Z1kIiEvv");
  EXPECT_EQ(back->symbol("none"), nullptr);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::vector<char> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    ASSERT_FALSE(decode_metadata({cut.data(), cut.size()}).ok()) << length;
  }
}

}  // namespace
}  // namespace kiln::test
