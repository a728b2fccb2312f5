// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "apps/kiln/output/progress_meter.hpp"
#include "support/fakes/stepped_clock.hpp"

namespace kiln::cli {
namespace {

using namespace std::chrono_literals;

class ProgressLine : public testing::Test {
 protected:
  ProgressMeter meter(std::size_t all = 72, double all_cost = 0) {
    return ProgressMeter({"compiling", "units", all, all_cost}, clock_);
  }
  test::SteppedClock clock_;
};

TEST_F(ProgressLine, IsDueAfterHalfASecond) {
  const ProgressMeter waiting = meter();
  clock_.advance(499ms);
  EXPECT_FALSE(waiting.is_due());
  clock_.advance(1ms);
  EXPECT_TRUE(waiting.is_due());
}

TEST_F(ProgressLine, ShowsCountRateAndRemainingTime) {
  ProgressMeter at_work = meter();
  for (int i = 0; i < 12; ++i) at_work.step();
  at_work.at("k.cu for sm_80");
  clock_.advance(4s);
  EXPECT_EQ(at_work.line(100),
            "kiln: compiling [###.................] 12/72 units, 3.0/s, about 20 s left: k.cu for sm_80");
}

TEST_F(ProgressLine, ShowsElapsedTimeIfTotalIsUnknown) {
  ProgressMeter at_work = meter();
  clock_.advance(3s);
  EXPECT_EQ(at_work.line(100), "kiln: compiling [....................] 0/72 units, 3 s so far");
  const ProgressMeter uncounted({"measuring", {}}, clock_);
  clock_.advance(7s);
  EXPECT_EQ(uncounted.line(100), "kiln: measuring 7 s so far");
}

TEST_F(ProgressLine, FitsTerminalWidth) {
  ProgressMeter at_work = meter();
  at_work.step();
  at_work.at("a/very/long/path/of/a/unit/with/ümläuts/and/日本語/names.cu for sm_90");
  clock_.advance(2s);
  for (std::size_t columns = 1; columns < 130; ++columns) EXPECT_LE(columns_of(at_work.line(columns)), columns);
  EXPECT_EQ(at_work.line(39), "compiling 1/72 units, about 2 min left");
  EXPECT_EQ(at_work.line(50), "kiln: compiling 1/72 units, about 2 min left");
}

TEST_F(ProgressLine, WeightsRemainingTimeByCost) {
  ProgressMeter at_work = meter(2, 4000);
  at_work.step(1000);
  clock_.advance(1s);
  EXPECT_EQ(at_work.remaining(), std::chrono::nanoseconds(3s));
  ProgressMeter unweighed = meter(2);
  unweighed.step();
  clock_.advance(1s);
  EXPECT_EQ(unweighed.remaining(), std::chrono::nanoseconds(1s));
}

TEST(RoughTime, IsRounded) {
  EXPECT_EQ(rough_time_text(0ns), "about 1 s");
  EXPECT_EQ(rough_time_text(3200ms), "about 4 s");
  EXPECT_EQ(rough_time_text(17s), "about 20 s");
  EXPECT_EQ(rough_time_text(160s), "about 3 min");
  EXPECT_EQ(rough_time_text(3h), "about 3.0 h");
}

}  // namespace
}  // namespace kiln::cli
