// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/fixtures/exact_variant.hpp"
#include "support/fixtures/runtime_fixture.hpp"

namespace kiln::test {
namespace {

using runtime::Backend;
using runtime::Dispatch;
using runtime::Runtime;

Result<int> nothing(Dispatch&) { return 0; }
using Nothing = Result<int>(Dispatch&);
using NothingDone = runtime::Implementation<Nothing>;

constexpr auto kJoin = runtime::operation<Nothing>("join", runtime::PrecisionClass::Predicate,
                                                   NothingDone{exact_variant(Backend::Cpu), &nothing});
constexpr auto kBoxJoin = runtime::operation<Nothing>("box join", runtime::PrecisionClass::Coarse,
                                                      NothingDone{exact_variant(Backend::Cpu), &nothing});
constexpr runtime::Rewrite kJoinOfBoxes{"join of boxes", &kJoin, &kBoxJoin};

bool positive(const int& value) { return value > 0; }
bool even(const int& value) { return value % 2 == 0; }
constexpr runtime::RewriteRule<int> kRules[] = {{{"box join of positives", &kBoxJoin, &kJoin}, &positive},
                                                {{"join of positives", &kJoin, &kBoxJoin}, &positive},
                                                {{"join of even numbers", &kJoin, nullptr}, &even}};

class RewriteTest : public testing::Test {
 protected:
  RuntimeFixture fixture_;
};

TEST_F(RewriteTest, IsEnabledByDefaultAndEmitsEvent) {
  Runtime runtime(fixture_.session());
  EXPECT_TRUE(runtime.rewrites());
  EXPECT_TRUE(runtime.should_rewrite(kJoinOfBoxes, 30));
  const Event reported = fixture_.only(runtime::events::kRewritten);
  EXPECT_EQ(reported.requested, "join");
  EXPECT_EQ(reported.selected, "box join");
  EXPECT_EQ(reported.message, "join of boxes");
  EXPECT_EQ(reported.context.rows, 30U);
}

TEST_F(RewriteTest, OverridePrecedesEnvironment) {
  fixture_.rewrites.set("off");
  Runtime runtime(fixture_.session());
  EXPECT_FALSE(runtime.rewrites());
  EXPECT_FALSE(runtime.should_rewrite(kJoinOfBoxes, 30));
  EXPECT_EQ(fixture_.log.count(runtime::events::kRewritten), 0U);
  runtime.set_rewrites(true);
  EXPECT_TRUE(runtime.should_rewrite(kJoinOfBoxes, 30));
  runtime.set_rewrites(std::nullopt);
  EXPECT_FALSE(runtime.rewrites());
  fixture_.rewrites.set(nullptr);
  runtime.set_rewrites(std::nullopt);
  EXPECT_TRUE(runtime.rewrites()) << "the environment is read again";
}

TEST_F(RewriteTest, FirstRuleOfTheOperationThatAppliesIsUsed) {
  Runtime runtime(fixture_.session());
  EXPECT_EQ(find_rewrite(runtime, kRules, kJoin, 30, 2), &kRules[1].rewrite);
  EXPECT_EQ(fixture_.only(runtime::events::kRewritten).message, "join of positives");
  EXPECT_EQ(find_rewrite(runtime, kRules, kJoin, 30, -1), nullptr);
  EXPECT_EQ(fixture_.log.count(runtime::events::kRewritten), 1U);
}

TEST_F(RewriteTest, RuleCanReturnAnInputUnchanged) {
  Runtime runtime(fixture_.session());
  const runtime::Rewrite* const found = find_rewrite(runtime, kRules, kJoin, 30, -2);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->to, nullptr);
  const Event reported = fixture_.only(runtime::events::kRewritten);
  EXPECT_EQ(reported.requested, "join");
  EXPECT_EQ(reported.selected, "input");
  EXPECT_EQ(reported.message, "join of even numbers");
}

TEST_F(RewriteTest, NoRuleIsUsedIfRewritesAreOff) {
  Runtime runtime(fixture_.session());
  runtime.set_rewrites(false);
  EXPECT_EQ(find_rewrite(runtime, kRules, kJoin, 30, 2), nullptr);
  EXPECT_EQ(fixture_.log.count(runtime::events::kRewritten), 0U);
}

TEST_F(RewriteTest, InvalidValueIsReportedAndIgnored) {
  fixture_.rewrites.set("perhaps");
  Runtime runtime(fixture_.session());
  EXPECT_TRUE(runtime.rewrites());
  EXPECT_TRUE(has(fixture_.only(Event::Kind::ConfigWarning).message,
                  "KILN_REWRITES is ignored: invalid value 'perhaps'; use 1, true"));
}

TEST_F(RewriteTest, EventBelongsToEnclosingRun) {
  Runtime runtime(fixture_.session());
  {
    const auto dispatch = Dispatch::begin(runtime, kJoin, {.rows = 5});
    ASSERT_TRUE(dispatch.has_value());
    EXPECT_TRUE(runtime.should_rewrite(kJoinOfBoxes, 5));
  }
  EXPECT_EQ(fixture_.only(runtime::events::kRewritten).context.dispatch,
            fixture_.only(runtime::events::kDispatched).context.dispatch);
}

}  // namespace
}  // namespace kiln::test
