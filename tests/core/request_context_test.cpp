// SPDX-License-Identifier: Apache-2.0
#include "core/request_context.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

#include "support/fakes/manual_clock.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln::test {
namespace {

std::chrono::nanoseconds time_of_sleep(const RequestContext& context, const Clock& clock) {
  const auto start = clock.steady();
  context.sleep(clock, kHangTimeout);
  return clock.steady() - start;
}

TEST(RequestContext, SleepsForTheTime) {
  const ManualClock clock;
  EXPECT_GE(time_of_sleep({}, clock), kHangTimeout);
}

TEST(RequestContext, StopEndsSleepAtOnce) {
  std::stop_source stop;
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    stop.request_stop();
  });
  EXPECT_LT(time_of_sleep({.stop = stop.get_token()}, system_clock()), kHangTimeout / 2);
  EXPECT_LT(time_of_sleep({.stop = stop.get_token()}, system_clock()), kHangTimeout / 2) << "stopped before the sleep";
}

TEST(RequestContext, InterruptCheckShortensSleep) {
  const ManualClock clock;
  const std::function<bool()> keep_waiting = [] { return true; };
  InterruptCheck check(&keep_waiting);
  const RequestContext context{.deadline = Deadline(clock, kHangTimeout, &check)};
  EXPECT_LE(time_of_sleep(context, clock), std::chrono::milliseconds(500));
}

TEST(RequestContext, IsBackgroundUntilCallerWaits) {
  RequestContext context;
  EXPECT_FALSE(context.is_background()) << "without an engine, the caller waits";
  context.urgent = Urgency(false);
  EXPECT_TRUE(context.is_background());
  context.urgent.raise();
  EXPECT_FALSE(context.is_background());
}

}  // namespace
}  // namespace kiln::test
