// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler. The events are written by its documented schema; none is from a real GPU.
#include "analysis/audit/kineto_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/audit/audit.hpp"

namespace kiln::test {
namespace {

constexpr const char* kDevices = R"({"id":0,"name":"Sample GPU","numSms":80})";

/// A profile that is written event by event.
class KinetoText {
 public:
  void event(const std::string& category, const std::string& name, double ts, double duration,
             const std::string& arguments = "", const std::string& thread = "9") {
    add(R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":8,"tid":)" + thread + R"(,"ts":)" +
        std::to_string(ts) + R"(,"dur":)" + std::to_string(duration) + R"(,"args":{)" + arguments + "}}");
  }
  void call(const std::string& name, double ts, int correlation, double duration = 5) {
    event("cuda_runtime", name, ts, duration, R"("cbid":1,"correlation":)" + std::to_string(correlation));
  }
  void kernel(double ts, int correlation, int stream = 13, const std::string& name = "scale(float*)") {
    event("kernel", name, ts, 20,
          R"("device":0,"context":1,"stream":)" + std::to_string(stream) + R"(,"correlation":)" +
              std::to_string(correlation) + R"(,"shared memory":512,"grid":[4,3,2],"block":[32,8,1])",
          std::to_string(stream));
  }
  void copy(const std::string& name, double ts, int correlation, int bytes, int stream = 13) {
    event("gpu_memcpy", name, ts, 10,
          R"("device":0,"context":1,"stream":)" + std::to_string(stream) + R"(,"correlation":)" +
              std::to_string(correlation) + R"(,"bytes":)" + std::to_string(bytes));
  }
  void wait(double ts, int correlation, int stream) {
    call("cudaStreamSynchronize", ts, correlation);
    event("cuda_sync", "Stream Sync", ts, 5,
          R"("stream":)" + std::to_string(stream) + R"(,"correlation":)" + std::to_string(correlation));
  }
  void launch(double ts, int correlation, int stream = 13) {
    call("cudaLaunchKernel", ts, correlation);
    kernel(ts + 6, correlation, stream);
  }
  void add(const std::string& event) { events_ += (events_.empty() ? "" : ",\n") + event; }
  std::string text() const {
    return std::string(R"({"schemaVersion":1,"deviceProperties":[)") + kDevices + R"(],"traceEvents":[)" + events_ +
           "]}";
  }
  audit::Trace trace() const { return audit::parse_trace(text()).value(); }

 private:
  std::string events_;
};

std::vector<std::string> summary_of(const audit::Trace& trace) {
  std::vector<std::string> lines;
  for (const audit::RecordedEvent& event : trace.events) {
    lines.push_back(std::string(event_name(event.event)) + " " + event.event.message);
  }
  return lines;
}
using Lines = std::vector<std::string>;

TEST(KinetoReader, JoinsALaunchWithItsKernel) {
  KinetoText profile;
  profile.call("cudaLaunchKernel", 1000.5, 42);
  profile.kernel(1020, 42);
  const audit::Trace trace = profile.trace();
  EXPECT_EQ(trace.format, audit::TraceFormat::Kineto);
  ASSERT_EQ(trace.events.size(), 1U);
  const audit::RecordedEvent& launch = trace.events.front();
  EXPECT_EQ(launch.event.kind, Event::Kind::Launched);
  EXPECT_EQ(launch.event.message, "scale(float*)");
  EXPECT_EQ(launch.thread, 9U) << "the thread of the call, not of the kernel";
  EXPECT_EQ(launch.event.stream, 13U);
  EXPECT_EQ(launch.event.grid_blocks, 24U);
  EXPECT_EQ(launch.event.block_threads, 256U);
  EXPECT_EQ(launch.event.shared_bytes, 512U);
  EXPECT_EQ(launch.event.target, "Sample GPU");
  EXPECT_DOUBLE_EQ(launch.start_ms, 0);
  EXPECT_NEAR(launch.event.ms, 0.005, 1e-9);
  EXPECT_NEAR(launch.device_start_ms, 0.0195, 1e-9);
  EXPECT_NEAR(launch.device_end_ms, 0.0395, 1e-9);
  EXPECT_EQ(launch.event.context.dispatch, 0U);
  EXPECT_TRUE(trace.not_recorded.empty());
}

TEST(KinetoReader, CopiesHaveDirectionAndKindOfMemory) {
  KinetoText profile;
  const char* const names[] = {"Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)",
                               "Memcpy DtoH (Device -> Pinned)", "Memcpy DtoD (Device -> Device)",
                               "Memcpy HtoH (Pageable -> Pageable)"};
  for (int i = 0; i < 5; ++i) {
    profile.call("cudaMemcpyAsync", i * 100, i + 1);
    profile.copy(names[i], i * 100 + 10, i + 1, 4096);
  }
  const audit::Trace trace = profile.trace();
  EXPECT_EQ(summary_of(trace),
            (Lines{"copied to the device", "copied to the device", "copied from the device", "copied on the device"}));
  EXPECT_EQ(trace.events[0].event.pinned, std::optional(false));
  EXPECT_EQ(trace.events[1].event.pinned, std::optional(true));
  EXPECT_EQ(trace.events[2].event.pinned, std::optional(true));
  EXPECT_EQ(trace.events[3].event.pinned, std::nullopt);
  EXPECT_EQ(trace.events[2].event.bytes, 4096U);
}

TEST(KinetoReader, AReadAndTheWaitForItAreOneEvent) {
  KinetoText profile;
  profile.launch(0, 1);
  profile.call("cudaMemcpyAsync", 100, 2);
  profile.copy("Memcpy DtoH (Device -> Pageable)", 110, 2, 8);
  profile.call("cudaStreamSynchronize", 110, 3, 40);
  profile.call("cudaStreamSynchronize", 200, 4);
  const audit::Trace trace = profile.trace();
  EXPECT_EQ(summary_of(trace), (Lines{"launched scale(float*)", "copied from the device", "synchronized "}));
  EXPECT_NEAR(trace.events[1].event.ms, 0.05, 1e-9) << "the read ends with the wait";
}

TEST(KinetoReader, AReadOfEachStreamHasItsOwnWait) {
  for (const bool named : {true, false}) {
    KinetoText profile;  // double buffering: the host waits for the older of two streams
    int id = 0;
    for (int i = 0; i < 12; ++i) {
      const double at = i * 1000;
      const int stream = 13 + i % 2;
      if (i >= 2 && named) profile.wait(at, ++id, stream);
      if (i >= 2 && !named) profile.call("cudaEventSynchronize", at, ++id);
      profile.launch(at + 100, ++id, stream);
      profile.call("cudaMemcpyAsync", at + 200, ++id);
      profile.copy("Memcpy DtoH (Device -> Pinned)", at + 210, id, 4096, stream);
    }
    profile.call("cudaDeviceSynchronize", 20'000, ++id);
    const audit::Trace trace = profile.trace();
    EXPECT_EQ(trace.events.size(), 24U) << "each wait is a part of a read";
    EXPECT_NEAR(trace.events[1].end_ms, 1.905, 1e-9) << "its own stream, not the last one";
    for (const audit::Finding& finding : audit::run_audit(trace).findings) {
      EXPECT_STRNE(finding.rule->name, "sync_between_launches");
    }
  }
}

TEST(KinetoReader, AWaitForAnEarlierEventIsNotOneForTheLastLaunch) {
  const auto findings = [](double wait_us) {
    KinetoText profile;
    for (int i = 0; i < 20; ++i) {
      profile.launch(i * 1000, 2 * i + 1);  // on the device for 20 us after 6
      profile.call("cudaEventSynchronize", i * 1000 + 6, 2 * i + 2, wait_us);
    }
    return audit::run_audit(profile.trace()).findings.size();
  };
  EXPECT_EQ(findings(10), 0U) << "the launch still runs when the wait ends";
  EXPECT_EQ(findings(40), 1U);
}

TEST(KinetoReader, CallsOfHipAreThoseOfCuda) {
  KinetoText profile;
  profile.call("hipMalloc", 0, 1);
  profile.call("hipExtModuleLaunchKernel", 100, 2);
  profile.kernel(110, 2);
  profile.call("hipDeviceSynchronize", 200, 3);
  profile.call("hipMemcpyWithStream", 300, 4);
  profile.copy("CopyDeviceToHost", 310, 4, 8);
  profile.call("hipHostMalloc", 400, 5);
  EXPECT_EQ(summary_of(profile.trace()), (Lines{"allocated allocated", "launched scale(float*)",
                                                "synchronized the device", "copied from the device"}));
}

TEST(KinetoReader, UnknownCallsAndCopiesAreMissingEvidence) {
  KinetoText profile;
  profile.call("otherLaunch", 0, 1);
  profile.kernel(10, 1);
  profile.copy("Transfer", 50, 2, 8);
  EXPECT_EQ(profile.trace().not_recorded,
            (Lines{"calls of the CUDA API", "memory allocations", "copies", "the directions of all copies"}));
  EXPECT_TRUE(audit::run_audit(profile.trace()).lacks_evidence());
}

TEST(KinetoReader, TheDriversPoolIsAPool) {
  KinetoText profile;
  for (int i = 0; i < 40; ++i) {
    profile.call("cudaMallocAsync", i * 1000, 2 * i + 1);
    profile.launch(i * 1000 + 100, 2 * i + 2);
  }
  EXPECT_EQ(profile.trace().events[0].event.origin, "pool");
  EXPECT_TRUE(audit::run_audit(profile.trace()).findings.empty());
}

TEST(KinetoReader, OnlyAGraphHasSeveralKernels) {
  KinetoText profile;
  profile.launch(0, 1);
  profile.kernel(500, 1, 13, "other");
  EXPECT_EQ(summary_of(profile.trace()), (Lines{"launched scale(float*)", "launched other"}));
}

TEST(KinetoReader, MetadataCanComeFirst) {
  EXPECT_TRUE(audit::parse_trace(R"({"traceEvents":[{"ph":"M","name":"process_name","pid":1,"args":{"name":"python"}},
      {"ph":"X","cat":"cpu_op","name":"aten::add","ts":1,"dur":1,"tid":1}]})")
                  .has_value());
}

TEST(KinetoReader, WaitsAndAllocationsBelongToTheStreamOfTheThread) {
  KinetoText profile;
  profile.call("cudaMalloc", 0, 1);
  profile.launch(100, 2, 13);
  profile.call("cudaDeviceSynchronize", 200, 3);
  profile.launch(300, 4, 7);
  profile.call("cudaStreamSynchronize", 400, 5);
  profile.event("cuda_sync", "Stream Sync", 400, 5, R"("cuda_sync_kind":"Stream Sync","stream":13,"correlation":5)");
  const audit::Trace trace = profile.trace();
  ASSERT_EQ(trace.events.size(), 5U);
  EXPECT_EQ(trace.events[0].event.kind, Event::Kind::Allocated);
  EXPECT_EQ(trace.events[0].event.stream, 13U) << "the first stream that the thread used";
  EXPECT_EQ(trace.events[2].event.stream, 13U) << "the last stream that the thread used";
  EXPECT_EQ(trace.events[2].event.message, "the device");
  EXPECT_EQ(trace.events[3].event.stream, 0U) << "CUPTI's number of the default stream is 7";
  EXPECT_EQ(trace.events[4].event.stream, 13U) << "the profile names it";
}

TEST(KinetoReader, RangesOfTheProgramAreOperations) {
  KinetoText profile;
  for (int step = 1; step <= 2; ++step) {
    const double at = step * 1000;
    profile.event("user_annotation", "ProfilerStep#" + std::to_string(step), at, 1000);
    profile.event("cpu_op", "aten::linear", at + 100, 300);
    profile.event("cpu_op", "aten::addmm", at + 110, 200);
    profile.launch(at + 150, step);
  }
  profile.event("cpu_op", "aten::add", 5000, 100);
  profile.launch(5010, 9);
  profile.launch(6000, 10);
  const audit::Trace trace = profile.trace();
  ASSERT_EQ(trace.events.size(), 4U);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(trace.events[i].event.context.operation, "ProfilerStep");
    EXPECT_EQ(trace.events[i].event.context.stage, "aten::linear");
    EXPECT_EQ(trace.events[i].event.context.dispatch, i + 1U);
  }
  EXPECT_EQ(trace.events[2].event.context.dispatch, 0U) << "an operator alone is not an operation";
  EXPECT_EQ(trace.events[2].event.context.operation, "");
  EXPECT_EQ(trace.events[2].event.context.stage, "aten::add");
  EXPECT_EQ(trace.events[3].event.context.stage, "");
}

TEST(KinetoReader, TensorsOfTheAllocatorComeFromAPool) {
  KinetoText profile;
  profile.launch(0, 1);
  for (const char* const fields :
       {R"("Device Type":1,"Bytes":1024)", R"("Device Type":1,"Bytes":-1024)", R"("Device Type":0,"Bytes":77)"}) {
    profile.add(R"({"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":8,"tid":9,"ts":50,"args":{)" +
                std::string(fields) + "}}");
  }
  profile.call("cudaMallocHost", 60, 2);
  const audit::Trace trace = profile.trace();
  EXPECT_EQ(summary_of(trace), (Lines{"launched scale(float*)", "allocated allocated", "allocated released"}));
  EXPECT_EQ(trace.events[1].event.bytes, 1024U);
  EXPECT_EQ(trace.events[1].event.origin, "pool");
}

TEST(KinetoReader, ProfilesOf2021AreRead) {
  KinetoText profile;
  profile.event("Operator", "ProfilerStep#5", 0, 1000, "", R"("9")");
  profile.event("Runtime", "cudaLaunchKernel", 100, 5, R"("correlation":1)", R"("9")");
  profile.event("Kernel", "scale", 110, 5, R"("device":0,"stream":7,"correlation":1,"grid":[1,1,1])", R"("stream 7")");
  const audit::Trace trace = profile.trace();
  ASSERT_EQ(trace.events.size(), 1U);
  EXPECT_EQ(trace.events[0].thread, 9U);
  EXPECT_EQ(trace.events[0].event.context.operation, "ProfilerStep");
  EXPECT_EQ(trace.events[0].event.context.dispatch, 1U);
}

TEST(KinetoReader, SaysWhatWasNotRecorded) {
  KinetoText nothing;
  nothing.event("cpu_op", "aten::add", 0, 5);
  EXPECT_EQ(nothing.trace().not_recorded, (Lines{"calls of the CUDA API", "memory allocations", "kernels", "copies"}))
      << "PyTorch on a machine without a GPU writes such a profile";
  KinetoText calls;
  calls.call("cudaLaunchKernel", 0, 1);
  calls.call("cudaMemcpyAsync", 10, 2);
  EXPECT_EQ(calls.trace().not_recorded, (Lines{"kernels", "copies"}));
  EXPECT_EQ(summary_of(calls.trace()), (Lines{"launched unknown kernel"}));
  KinetoText device;
  device.kernel(0, 1);
  EXPECT_EQ(device.trace().not_recorded, (Lines{"calls of the CUDA API", "memory allocations", "copies"}));
  EXPECT_EQ(summary_of(device.trace()), (Lines{"launched scale(float*)"})) << "at its time on the device";
}

TEST(KinetoReader, AGraphIsOneLaunch) {
  KinetoText profile;
  profile.call("cudaGraphLaunch", 0, 1);
  for (int i = 0; i < 3; ++i) profile.kernel(10 + 30 * i, 1);
  EXPECT_EQ(summary_of(profile.trace()), (Lines{"launched CUDA graph"}));
}

TEST(KinetoReader, OnlyTheOuterOfTwoNestedCallsCounts) {
  KinetoText profile;
  profile.launch(0, 1);
  profile.call("cudaMalloc", 100, 2, 50);
  profile.event("cuda_driver", "cuMemAlloc_v2", 110, 20, R"("correlation":3)");
  profile.call("cudaFree", 200, 4, 50);
  EXPECT_EQ(summary_of(profile.trace()),
            (Lines{"launched scale(float*)", "allocated allocated", "allocated released"}));
}

TEST(KinetoReader, LongNamesLoseTheirMiddle) {
  KinetoText profile;
  profile.call("cudaLaunchKernel", 0, 1);
  profile.kernel(10, 1, 13, "begin: " + std::string(5000, 'x') + "end");
  const std::string name = profile.trace().events.front().event.message;
  EXPECT_LE(name.size(), 256U);
  EXPECT_TRUE(name.starts_with("begin:xxx")) << "a colon and a space would mean a failed launch";
  EXPECT_TRUE(name.ends_with("xend"));
}

constexpr int kRowBytes = 4 << 20;

/// Adds the rows up, a launch, a wait and the rows down, with copies on `copies_on`, in 1000 µs.
void add_round_trip(KinetoText& profile, int round, int copies_on = 13) {
  const double start = round * 1000;
  const int first = round * 4 + 1;
  profile.call("cudaMemcpyAsync", start + 100, first);
  profile.copy("Memcpy HtoD (Pinned -> Device)", start + 110, first, kRowBytes, copies_on);
  profile.launch(start + 200, first + 1);
  profile.wait(start + 300, first + 2, 13);
  profile.call("cudaMemcpyAsync", start + 400, first + 3);
  profile.copy("Memcpy DtoH (Device -> Pinned)", start + 410, first + 3, kRowBytes, copies_on);
}

bool has_finding(const audit::Report& report, const std::string& name, audit::Severity severity) {
  return std::any_of(report.findings.begin(), report.findings.end(), [&](const audit::Finding& finding) {
    return finding.rule->name == name && finding.rule->severity == severity;
  });
}

TEST(KinetoAudit, RoundTripOverStepsOfTheProfilerBlocks) {
  KinetoText profile;
  for (int step = 0; step < 40; ++step) {
    add_round_trip(profile, step);
    profile.event("user_annotation", "ProfilerStep#" + std::to_string(step), step * 1000 + 50, 850);
  }
  EXPECT_TRUE(has_finding(audit::run_audit(profile.trace()), "host_step", audit::Severity::Blocking));
}

TEST(KinetoAudit, RoundTripWithCopiesOnAnotherStreamBlocks) {
  KinetoText profile;
  for (int round = 0; round < 40; ++round) add_round_trip(profile, round, 17);
  EXPECT_TRUE(has_finding(audit::run_audit(profile.trace()), "host_step", audit::Severity::Blocking));
}

TEST(KinetoAudit, RequestsInOneRangeDoNotBlock) {
  KinetoText profile;
  for (int request = 0; request < 8; ++request) {
    const double start = request * 1000;
    const int first = request * 4 + 1;
    profile.call("cudaMemcpyAsync", start + 100, first);
    profile.copy("Memcpy HtoD (Pinned -> Device)", start + 110, first, 600 << 10);
    profile.launch(start + 200, first + 1);
    profile.call("cudaMemcpyAsync", start + 400, first + 2);
    profile.copy("Memcpy DtoH (Device -> Pinned)", start + 410, first + 2, 4000);
    profile.wait(start + 500, first + 3, 13);
  }
  profile.event("user_annotation", "main", 1, 9000);
  const audit::Report report = audit::run_audit(profile.trace());
  for (const audit::Finding& finding : report.findings) {
    EXPECT_LT(finding.rule->severity, audit::Severity::High) << finding.rule->name << ": " << finding.text;
  }
}

TEST(KinetoReader, HostileInputIsRejected) {
  const auto reason = [](const std::string& text) {
    const auto trace = audit::parse_trace(text);
    return trace.has_value() ? "read" : trace.error().message;
  };
  const std::string head = R"({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"kernel")";
  EXPECT_NE(reason(head).find("invalid JSON"), std::string::npos);
  EXPECT_NE(reason(head + "}," + std::string(1'000'000, '[')).find("deeply"), std::string::npos);
  EXPECT_NE(reason(head + R"(,"name":")" + std::string(100'000, 'x') + "\"}]}").find("too long"), std::string::npos);
  EXPECT_EQ(audit::parse_trace("\x1f\x8b\x08 compressed").error().code, Code::Unsupported);
  KinetoText profile;
  profile.launch(0, 1);
  profile.call("cudaMemcpyAsync", 100, 2);
  const std::string whole = profile.text();
  for (std::size_t length = 0; length < whole.size(); length += 5) {
    EXPECT_NE(reason(whole.substr(0, length)), "read") << length;
  }
  for (const char* number : {"-1", "1e300", "18446744073709551615", "null", "true", "[1]", "{}", "\"x\""}) {
    std::string text = whole;
    for (const char* field : {"\"ts\":", "\"correlation\":", "\"stream\":", "\"tid\":"}) {
      const std::size_t at = text.find(field) + std::string(field).size();
      text.replace(at, text.find_first_of(",}", at) - at, number);
    }
    const auto trace = audit::parse_trace(text);
    ASSERT_TRUE(trace.has_value()) << text;
    (void)audit::run_audit(*trace);
  }
}

}  // namespace
}  // namespace kiln::test
