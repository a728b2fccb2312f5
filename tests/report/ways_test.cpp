#include <gtest/gtest.h>

#include "report/made_trace.hpp"

namespace kiln::test {
namespace {

using report::Step;

std::string text_of(const report::Way& way) {
  std::string text;
  for (const Step& step : way.steps) {
    text += (text.empty() ? "" : ", ") + std::string(to_string(step.kind)) + ' ' +
            std::to_string(static_cast<int>(step.ms + 0.5));
  }
  return text;
}

TEST(Ways, GoFromTheRequestToTheFirstLaunchWithoutAGap) {
  MadeTrace made;
  made.tell(Event::Kind::Requested, 10, 0, 1)
      .tell(Event::Kind::Miss, 12, 0, 1, MadeTrace::kWarm)
      .tell(Event::Kind::Compiled, 115, 100, 1, MadeTrace::kWarm)
      .tell(Event::Kind::Published, 118, 0, 1, MadeTrace::kWarm)
      .tell(Event::Kind::Loaded, 130, 7, 1)
      .tell(Event::Kind::Launched, 142, 2, 1)
      .message("k")
      .tell(Event::Kind::Launched, 500, 2, 1);
  const std::vector<report::Way> ways = report::ways_of(made.trace());
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(text_of(ways[0]), "queue 5, compile 100, publish 3, unclaimed 5, load 7, ready 10, launch 2");
  EXPECT_EQ(ways[0].start_ms, 10);
  EXPECT_EQ(ways[0].total_ms(), 132);
  EXPECT_EQ(ways[0].launched_ms, 142);
  EXPECT_EQ(ways[0].origin, "compiled");
  EXPECT_EQ(ways[0].kernel, "k");
}

TEST(Ways, BeginWithTheCallerWhoWaitedWhereNobodyHadRequestedIt) {
  MadeTrace made;
  made.tell(Event::Kind::Compiled, 115, 100, 1, MadeTrace::kWarm).tell(Event::Kind::HotCompile, 116, 106, 1);
  const std::vector<report::Way> ways = report::ways_of(made.trace());
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(text_of(ways[0]), "queue 5, compile 100");
  EXPECT_EQ(ways[0].start_ms, 10);
  EXPECT_EQ(ways[0].waited_ms, 106);
  EXPECT_FALSE(ways[0].launched_ms);
}

TEST(Ways, HaveTheWaitForAnotherProcessBeforeTheHitThatEndedIt) {
  MadeTrace made;
  made.tell(Event::Kind::Requested, 10, 0, 1)
      .tell(Event::Kind::Hit, 215, 4, 1, MadeTrace::kWarm)
      .origin("disk")
      .tell(Event::Kind::Waited, 216, 200, 1, MadeTrace::kWarm)
      .tell(Event::Kind::Loaded, 220, 3, 1);
  const std::vector<report::Way> ways = report::ways_of(made.trace());
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(text_of(ways[0]), "queue 6, claim 195, find 4, unclaimed 2, load 3");
  EXPECT_EQ(ways[0].origin, "disk");
}

TEST(Ways, AreOneForEachUnitInTheOrderInWhichTheyBegan) {
  MadeTrace made;
  made.tell(Event::Kind::Requested, 20, 0, 2).tell(Event::Kind::Requested, 10, 0, 1).tell(Event::Kind::Hit, 5, 1);
  const std::vector<report::Way> ways = report::ways_of(made.trace());
  ASSERT_EQ(ways.size(), 2U) << "what has no flow belongs to no unit";
  EXPECT_EQ(ways[0].unit, "unit 1");
  EXPECT_EQ(ways[1].unit, "unit 2");
}

}  // namespace
}  // namespace kiln::test
