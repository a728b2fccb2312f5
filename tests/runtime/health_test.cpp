#include "runtime/health.hpp"

#include <gtest/gtest.h>

#include "support/traces.hpp"

namespace kiln::test {
namespace {

audit::Trace trace_of(int on_device, int fallen_back, const char* reason) {
  HandMadeTrace trace;
  for (int run = 0; run < on_device; ++run) {
    trace.begin("auto", "opencl");
    trace.launched("k");
    trace.dispatched("opencl");
  }
  for (int run = 0; run < fallen_back; ++run) {
    trace.begin("auto", "opencl");
    trace.tell(trace.made(Event::Kind::FellBack, reason));
    trace.dispatched("cpu");
  }
  return audit::parse_trace(trace.json()).value();
}

TEST(Health, CountsRunsOverTracesByOperationAndByReason) {
  audit::Health health;
  health.add(trace_of(3, 1, "no device"));
  health.add(trace_of(2, 2, "the device is lost"));
  EXPECT_EQ(health.traces, 2U);
  EXPECT_EQ(health.counts.total, 8U);
  EXPECT_EQ(health.counts.on_device, 5U);
  EXPECT_EQ(health.counts.on_processor, 3U);
  EXPECT_EQ(health.counts.fallbacks, 3U);
  EXPECT_DOUBLE_EQ(health.counts.acceleration(), 0.625);
  ASSERT_EQ(health.operations.size(), 1U);
  EXPECT_EQ(health.operations.begin()->first, "test.pipeline");
  EXPECT_EQ(health.operations.begin()->second.total, 8U);
  ASSERT_EQ(health.fallbacks.size(), 2U);
  EXPECT_EQ(health.fallbacks.front().reason, "the device is lost") << "the most frequent first";
  EXPECT_EQ(health.fallbacks.front().times, 2U);
}

TEST(Health, NothingRanIsARateOfZero) {
  audit::Health health;
  health.add({});
  EXPECT_EQ(health.counts.total, 0U);
  EXPECT_DOUBLE_EQ(health.counts.acceleration(), 0);
}

// A workflow that falls back is one event; each of its runs is on the processor because of it.
TEST(Health, AFallbackOfAWorkflowIsOneOfEachOfItsRuns) {
  HandMadeTrace trace;
  trace.begin("auto", "cpu");
  const Work run = trace.work();
  trace.work().dispatch = 0;
  trace.tell(trace.made(Event::Kind::FellBack, "no device"));
  trace.work() = run;
  trace.dispatched("cpu");
  trace.work() = run;
  trace.work().dispatch = 70;
  trace.work().operation = "test.second";
  trace.dispatched("cpu");
  audit::Health health;
  health.add(audit::parse_trace(trace.json()).value());
  EXPECT_EQ(health.counts.total, 2U);
  EXPECT_EQ(health.counts.fallbacks, 2U);
}

}  // namespace
}  // namespace kiln::test
