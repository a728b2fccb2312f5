// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "analysis/report/made_trace.hpp"

namespace kiln::test {
namespace {

using report::Phase;

std::string text_of(const report::UnitTimeline& way) {
  std::string text;
  for (const Phase& step : way.steps) {
    text += (text.empty() ? "" : ", ") + std::string(to_string(step.kind)) + ' ' +
            std::to_string(static_cast<int>(step.ms + 0.5));
  }
  return text;
}

TEST(Ways, CoverRequestToFirstLaunchWithoutGaps) {
  MadeTrace made;
  made.emit(Event::Kind::Requested, 10, 0, 1)
      .emit(Event::Kind::Miss, 12, 0, 1, MadeTrace::kWarm)
      .emit(Event::Kind::Compiled, 115, 100, 1, MadeTrace::kWarm)
      .emit(Event::Kind::Published, 118, 0, 1, MadeTrace::kWarm)
      .emit(Event::Kind::Loaded, 130, 7, 1)
      .emit(Event::Kind::Launched, 142, 2, 1)
      .message("k")
      .emit(Event::Kind::Launched, 500, 2, 1);
  const std::vector<report::UnitTimeline> ways = report::timelines_of(made.trace());
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(text_of(ways[0]), "queue 5, compile 100, publish 3, unclaimed 5, load 7, ready 10, launch 2");
  EXPECT_EQ(ways[0].start_ms, 10);
  EXPECT_EQ(ways[0].total_ms(), 132);
  EXPECT_EQ(ways[0].launched_ms, 142);
  EXPECT_EQ(ways[0].origin, "compiled");
  EXPECT_EQ(ways[0].kernel, "k");
}

TEST(Ways, StartWithWaitingCallerIfThereWasNoRequest) {
  MadeTrace made;
  made.emit(Event::Kind::Compiled, 115, 100, 1, MadeTrace::kWarm).emit(Event::Kind::BlockingCompile, 116, 106, 1);
  const std::vector<report::UnitTimeline> ways = report::timelines_of(made.trace());
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(text_of(ways[0]), "queue 5, compile 100");
  EXPECT_EQ(ways[0].start_ms, 10);
  EXPECT_EQ(ways[0].waited_ms, 106);
  EXPECT_FALSE(ways[0].launched_ms);
}

TEST(Ways, PlaceClaimWaitBeforeTheHitThatEndedIt) {
  MadeTrace made;
  made.emit(Event::Kind::Requested, 10, 0, 1)
      .emit(Event::Kind::Hit, 215, 4, 1, MadeTrace::kWarm)
      .origin("disk")
      .emit(Event::Kind::ClaimWaited, 216, 200, 1, MadeTrace::kWarm)
      .emit(Event::Kind::Loaded, 220, 3, 1);
  const std::vector<report::UnitTimeline> ways = report::timelines_of(made.trace());
  ASSERT_EQ(ways.size(), 1U);
  EXPECT_EQ(text_of(ways[0]), "queue 6, claim 195, find 4, unclaimed 2, load 3");
  EXPECT_EQ(ways[0].origin, "disk");
}

TEST(Ways, AreSortedByStartOnePerUnit) {
  MadeTrace made;
  made.emit(Event::Kind::Requested, 20, 0, 2).emit(Event::Kind::Requested, 10, 0, 1).emit(Event::Kind::Hit, 5, 1);
  const std::vector<report::UnitTimeline> ways = report::timelines_of(made.trace());
  ASSERT_EQ(ways.size(), 2U) << "events without a task id belong to no unit";
  EXPECT_EQ(ways[0].unit, "unit 1");
  EXPECT_EQ(ways[1].unit, "unit 2");
}

}  // namespace
}  // namespace kiln::test
