#include <gtest/gtest.h>

#include "support/runtime_rig.hpp"

namespace kiln::test {
namespace {

using runtime::Backend;
using runtime::Dispatch;
using runtime::Runtime;

Result<int> nothing(Dispatch&) { return 0; }
using Nothing = Result<int>(Dispatch&);
using NothingDone = runtime::Implementation<Nothing>;

constexpr auto kJoin =
    runtime::operation<Nothing>("join", runtime::PrecisionClass::Predicate, NothingDone{{Backend::Cpu}, &nothing});
constexpr auto kBoxJoin =
    runtime::operation<Nothing>("box join", runtime::PrecisionClass::Coarse, NothingDone{{Backend::Cpu}, &nothing});
constexpr runtime::Rewrite kJoinOfBoxes{"join of boxes", &kJoin, &kBoxJoin};

class RewriteTest : public testing::Test {
 protected:
  RuntimeRig rig_;
};

TEST_F(RewriteTest, IsOnUnlessSomebodySaysOtherwiseAndIsTold) {
  Runtime runtime(rig_.session());
  EXPECT_TRUE(runtime.rewrites());
  EXPECT_TRUE(runtime.apply(kJoinOfBoxes, 30));
  const Event told = rig_.only(Event::Kind::Rewritten);
  EXPECT_EQ(told.requested, "join");
  EXPECT_EQ(told.selected, "box join");
  EXPECT_EQ(told.message, "join of boxes");
  EXPECT_EQ(told.work.rows, 30U);
}

TEST_F(RewriteTest, TheOverrideIsStrongerThanTheEnvironment) {
  rig_.rewrites.set("off");
  Runtime runtime(rig_.session());
  EXPECT_FALSE(runtime.rewrites());
  EXPECT_FALSE(runtime.apply(kJoinOfBoxes, 30));
  EXPECT_EQ(rig_.log.count(Event::Kind::Rewritten), 0U);
  runtime.set_rewrites(true);
  EXPECT_TRUE(runtime.apply(kJoinOfBoxes, 30));
  runtime.set_rewrites(std::nullopt);
  EXPECT_FALSE(runtime.rewrites());
  rig_.rewrites.set(nullptr);
  runtime.set_rewrites(std::nullopt);
  EXPECT_TRUE(runtime.rewrites()) << "the environment is read again";
}

TEST_F(RewriteTest, AnUnknownValueIsToldWithTheGoodOnesAndCountsAsNotSet) {
  rig_.rewrites.set("perhaps");
  Runtime runtime(rig_.session());
  EXPECT_TRUE(runtime.rewrites());
  EXPECT_TRUE(has(rig_.only(Event::Kind::Configuration).message, "KILN_REWRITES is none of on, off"));
}

TEST_F(RewriteTest, BelongsToTheRunInWhichItHappens) {
  Runtime runtime(rig_.session());
  {
    const auto dispatch = Dispatch::begin(runtime, kJoin, {.rows = 5});
    ASSERT_TRUE(dispatch.ok());
    EXPECT_TRUE(runtime.apply(kJoinOfBoxes, 5));
  }
  EXPECT_EQ(rig_.only(Event::Kind::Rewritten).work.dispatch, rig_.only(Event::Kind::Dispatched).work.dispatch);
}

}  // namespace
}  // namespace kiln::test
