// SPDX-License-Identifier: Apache-2.0
#include "cache/build_history.hpp"

#include <gtest/gtest.h>

#include "cache/disk_store.hpp"
#include "support/fixtures/artifacts.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

Recipe recipe_with(const std::string& source) {
  Recipe recipe{Unit::cuda("scale", source)
                    .with_preamble("#define N 4\n")
                    .with_option("-lineinfo")
                    .with_entry("scale<float>")
                    .with_include_root("/opt/include")
                    .with_header("a.cuh", "int a;"),
                Target::sm(90),
                {"nvrtc", "13.0.88", "/usr/lib/libnvrtc.so.13", sha256("a library"), {{"NVRTC_APPEND_FLAGS", "-G"}}},
                "/somewhere"};
  return recipe;
}

class History : public testing::Test {
 protected:
  void SetUp() override { store_ = DiskStore::open({.root = directory_.path("cache")}).value(); }
  std::vector<Build> builds(const std::string& name = "scale") { return *store_->history().builds("cuda", name); }

  TemporaryDirectory directory_;
  std::unique_ptr<DiskStore> store_;
};

TEST_F(History, RecordsInputsOfBuild) {
  const Recipe recipe = recipe_with("source");
  ASSERT_TRUE(store_->history().record(recipe, key_number(1), 250).has_value());
  ASSERT_EQ(builds().size(), 1u);
  const Build build = builds()[0];
  EXPECT_EQ(build.request, recipe.request_key());
  EXPECT_EQ(build.key, key_number(1));
  EXPECT_EQ(build.source, sha256("source"));
  EXPECT_EQ(build.preamble, sha256("#define N 4\n"));
  EXPECT_EQ(build.options, recipe.unit.options());
  EXPECT_EQ(build.entries, recipe.unit.entries());
  ASSERT_EQ(build.headers.size(), 1u);
  EXPECT_EQ(build.headers[0], std::make_pair(std::string("a.cuh"), sha256("int a;")));
  EXPECT_EQ(build.include_roots, std::vector<std::string>{"/opt/include"});
  EXPECT_EQ(build.working_directory, "/somewhere");
  EXPECT_EQ(build.target, Target::sm(90));
  EXPECT_EQ(build.compiler.version, "13.0.88");
  EXPECT_EQ(build.compiler.digest, sha256("a library"));
  EXPECT_EQ(build.compiler.environment, recipe.compiler.environment);
  EXPECT_EQ(build.cost_ms, 250);
  EXPECT_GT(build.built_at.count(), 0);
}

TEST_F(History, ReturnsNewestFirstWithoutDuplicatesUpToLimit) {
  for (int number = 0; number < 40; ++number) {
    ASSERT_TRUE(store_->history().record(recipe_with(std::to_string(number)), key_number(number), 1).has_value());
  }
  ASSERT_TRUE(store_->history().record(recipe_with("30"), key_number(30), 1).has_value());
  const auto found = builds();
  ASSERT_EQ(found.size(), UnitHistory::kMaxBuilds);
  EXPECT_EQ(found[0].key, key_number(30));
  EXPECT_EQ(found[1].key, key_number(39));
  EXPECT_EQ(std::count_if(found.begin(), found.end(), [](auto& build) { return build.key == key_number(30); }), 1);
}

TEST_F(History, SeparatesUnitsByNameAndKind) {
  ASSERT_TRUE(store_->history().record(recipe_with("source"), key_number(1), 1).has_value());
  EXPECT_TRUE(builds("other").empty());
  EXPECT_TRUE(store_->history().builds("opencl", "scale")->empty());
}

TEST_F(History, CorruptHistoryIsEmptyWithoutError) {
  ASSERT_TRUE(store_->history().record(recipe_with("source"), key_number(1), 1).has_value());
  const auto files = files_below(directory_.path("cache/v1/history"));
  ASSERT_EQ(files.size(), 1u);
  const std::string bytes = read_text(files[0]);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string corrupt = bytes;
    corrupt[at] ^= 1;
    ASSERT_FALSE(decode_history(corrupt).has_value()) << at;
    ASSERT_FALSE(decode_history(bytes.substr(0, at)).has_value()) << at;
  }
  write_text(files[0], bytes.substr(0, bytes.size() / 2));
  EXPECT_TRUE(builds().empty());
  ASSERT_TRUE(store_->history().record(recipe_with("source"), key_number(2), 1).has_value());
  EXPECT_EQ(builds().size(), 1u);
}

}  // namespace
}  // namespace kiln::test
