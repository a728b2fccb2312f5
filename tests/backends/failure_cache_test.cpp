// SPDX-License-Identifier: Apache-2.0
#include "backends/failure_cache.hpp"

#include <gtest/gtest.h>

#include "base/hash.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln::test {
namespace {

class FailureCacheTest : public testing::Test {
 protected:
  FailureCacheTest() { write_text(directory_.path("h.h"), "header"); }
  Recipe recipe(int number = 0) const {
    return {Unit::cuda("refused", std::to_string(number)), Target::sm(80), {}, directory_.path()};
  }
  // The dependency set of a compile that read h.h in the working directory.
  static DependencySet dependency_set() {
    DependencySet dependency_set;
    dependency_set.items = {{DependencySet::kWorkingDirectory, DependencySet::State::Read, "h.h", sha256("header"), 0}};
    return dependency_set;
  }

  TemporaryDirectory directory_;
  FileDigestCache digests_{std::string()};
  FailureCache failures_{digests_};
};

TEST_F(FailureCacheTest, UnknownRecipeIsTried) { EXPECT_TRUE(failures_.worth_another_try(recipe())); }

TEST_F(FailureCacheTest, FailedRecipeIsRetriedAfterInputChange) {
  failures_.add(recipe(), dependency_set());
  EXPECT_FALSE(failures_.worth_another_try(recipe()));
  EXPECT_TRUE(failures_.worth_another_try(recipe(1))) << "it is a different recipe";
  write_text(directory_.path("h.h"), "HEADER");
  EXPECT_TRUE(failures_.worth_another_try(recipe()));
  write_text(directory_.path("h.h"), "header");
  EXPECT_FALSE(failures_.worth_another_try(recipe()));
}

TEST_F(FailureCacheTest, ChecksFilesOfTheRequestingCheckout) {
  failures_.add(recipe(), dependency_set());
  const TemporaryDirectory elsewhere;
  Recipe other = recipe();
  other.working_directory = elsewhere.path();
  ASSERT_EQ(other.request_key(), recipe().request_key());
  EXPECT_TRUE(failures_.worth_another_try(other));
  write_text(elsewhere.path("h.h"), "header");
  EXPECT_FALSE(failures_.worth_another_try(other));
}

TEST_F(FailureCacheTest, CheckIsCalledEachTimeAndNewestEntryCounts) {
  bool better = false;
  failures_.add(recipe(), dependency_set());
  failures_.add(recipe(), [&](const Recipe& asked) {
    EXPECT_EQ(asked.unit.name(), "refused");
    return better;
  });
  EXPECT_FALSE(failures_.worth_another_try(recipe()));
  better = true;
  EXPECT_TRUE(failures_.worth_another_try(recipe()));
}

TEST_F(FailureCacheTest, NumberOfEntriesIsLimited) {
  const auto never = [](const Recipe&) { return false; };
  const int maximum = static_cast<int>(FailureCache::kMaxEntries);
  for (int i = 0; i < maximum; ++i) failures_.add(recipe(i), never);
  EXPECT_FALSE(failures_.worth_another_try(recipe(0)));
  failures_.add(recipe(maximum), never);
  EXPECT_FALSE(failures_.worth_another_try(recipe(maximum)));
  EXPECT_TRUE(failures_.worth_another_try(recipe(0)));
}

}  // namespace
}  // namespace kiln::test
