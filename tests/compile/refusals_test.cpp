#include "compile/refusals.hpp"

#include <gtest/gtest.h>

#include "base/hash.hpp"
#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln::test {
namespace {

class RefusalsTest : public testing::Test {
 protected:
  RefusalsTest() { spit(folder_.path("h.h"), "header"); }
  Recipe recipe(int number = 0) const {
    return {Unit::cuda("refused", std::to_string(number)), Target::sm(80), {}, folder_.path()};
  }
  // That of a compile which has read h.h in the working directory.
  static Closure closure() {
    Closure closure;
    closure.items = {{Closure::kWorkingDirectory, Closure::State::Read, "h.h", sha256("header"), 0}};
    return closure;
  }

  TemporaryDirectory folder_;
  FileDigests digests_{std::string()};
  Refusals refusals_{digests_};
};

TEST_F(RefusalsTest, WhatWasNotRefusedIsWorthATry) { EXPECT_TRUE(refusals_.worth_another_try(recipe())); }

TEST_F(RefusalsTest, WhatWasRefusedIsWorthAnotherTryOnceAFileThatItReadHasChanged) {
  refusals_.remember(recipe(), closure());
  EXPECT_FALSE(refusals_.worth_another_try(recipe()));
  EXPECT_TRUE(refusals_.worth_another_try(recipe(1))) << "it is another";
  spit(folder_.path("h.h"), "HEADER");
  EXPECT_TRUE(refusals_.worth_another_try(recipe()));
  spit(folder_.path("h.h"), "header");
  EXPECT_FALSE(refusals_.worth_another_try(recipe()));
}

TEST_F(RefusalsTest, TheFilesAreLookedForWhereWhoeverAsksHasThem) {
  refusals_.remember(recipe(), closure());
  const TemporaryDirectory elsewhere;
  Recipe other = recipe();
  other.working_directory = elsewhere.path();
  ASSERT_EQ(other.request_key(), recipe().request_key());
  EXPECT_TRUE(refusals_.worth_another_try(other));
  spit(elsewhere.path("h.h"), "header");
  EXPECT_FALSE(refusals_.worth_another_try(other));
}

TEST_F(RefusalsTest, AQuestionIsAskedEachTimeAndTheNewestReasonCounts) {
  bool better = false;
  refusals_.remember(recipe(), closure());
  refusals_.remember(recipe(), [&](const Recipe& asked) {
    EXPECT_EQ(asked.unit.name(), "refused");
    return better;
  });
  EXPECT_FALSE(refusals_.worth_another_try(recipe()));
  better = true;
  EXPECT_TRUE(refusals_.worth_another_try(recipe()));
}

TEST_F(RefusalsTest, AreForgottenBeforeTheyAreTooMany) {
  const auto never = [](const Recipe&) { return false; };
  const int most = static_cast<int>(Refusals::kMost);
  for (int i = 0; i < most; ++i) refusals_.remember(recipe(i), never);
  EXPECT_FALSE(refusals_.worth_another_try(recipe(0)));
  refusals_.remember(recipe(most), never);
  EXPECT_FALSE(refusals_.worth_another_try(recipe(most)));
  EXPECT_TRUE(refusals_.worth_another_try(recipe(0)));
}

}  // namespace
}  // namespace kiln::test
