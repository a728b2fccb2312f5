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

TEST_F(RewriteTest, InvalidValueIsReportedAndIgnored) {
  fixture_.rewrites.set("perhaps");
  Runtime runtime(fixture_.session());
  EXPECT_TRUE(runtime.rewrites());
  EXPECT_TRUE(has(fixture_.only(Event::Kind::ConfigWarning).message, "KILN_REWRITES must be one of on, off"));
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
