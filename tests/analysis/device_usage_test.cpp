// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/device_usage.hpp"

#include <gtest/gtest.h>

#include "support/fixtures/traces.hpp"

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
    trace.emit(trace.made(runtime::events::kFellBack, reason));
    trace.dispatched("cpu");
  }
  return audit::parse_trace(trace.json()).value();
}

TEST(DeviceUsage, CountsRunsByOperationAndReason) {
  audit::DeviceUsage usage;
  usage.add(trace_of(3, 1, "no device"));
  usage.add(trace_of(2, 2, "the device is lost"));
  EXPECT_EQ(usage.traces, 2U);
  EXPECT_EQ(usage.counts.total, 8U);
  EXPECT_EQ(usage.counts.on_device, 5U);
  EXPECT_EQ(usage.counts.on_processor, 3U);
  EXPECT_EQ(usage.counts.fallbacks, 3U);
  EXPECT_DOUBLE_EQ(usage.counts.acceleration(), 0.625);
  ASSERT_EQ(usage.operations.size(), 1U);
  EXPECT_EQ(usage.operations.begin()->first, "test.pipeline");
  EXPECT_EQ(usage.operations.begin()->second.total, 8U);
  ASSERT_EQ(usage.fallbacks.size(), 2U);
  EXPECT_EQ(usage.fallbacks.front().reason, "the device is lost") << "most frequent first";
  EXPECT_EQ(usage.fallbacks.front().count, 2U);
}

TEST(DeviceUsage, RateIsZeroWithoutRuns) {
  audit::DeviceUsage usage;
  usage.add({});
  EXPECT_EQ(usage.counts.total, 0U);
  EXPECT_DOUBLE_EQ(usage.counts.acceleration(), 0);
}

// A workflow that falls back emits one event, but each of its runs is on the CPU because of it.
TEST(DeviceUsage, WorkflowFallbackCountsForEachRun) {
  HandMadeTrace trace;
  trace.begin("auto", "cpu");
  const OperationContext run = trace.work();
  trace.work().dispatch = 0;
  trace.emit(trace.made(runtime::events::kFellBack, "no device"));
  trace.work() = run;
  trace.dispatched("cpu");
  trace.work() = run;
  trace.work().dispatch = 70;
  trace.work().operation = "test.second";
  trace.dispatched("cpu");
  audit::DeviceUsage usage;
  usage.add(audit::parse_trace(trace.json()).value());
  EXPECT_EQ(usage.counts.total, 2U);
  EXPECT_EQ(usage.counts.fallbacks, 2U);
}

}  // namespace
}  // namespace kiln::test
