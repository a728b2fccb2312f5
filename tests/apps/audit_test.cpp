// SPDX-License-Identifier: Apache-2.0
// kiln audit and kiln device-usage on hand-written traces.
#include <algorithm>

#include "apps/run_kiln.hpp"
#include "support/fixtures/traces.hpp"

namespace kiln::test {
namespace {

std::string clean_trace() {
  HandMadeTrace trace;
  trace.begin("gpu", "cuda");
  trace.launched("first");
  trace.stage_finished("first", "cuda", 2);
  trace.dispatched("cuda");
  return trace.json();
}

enum class With : unsigned char { Low, Medium, High, Blocking };

std::string faulty_trace(With fault) {
  HandMadeTrace trace;
  trace.begin("auto", "cuda");
  trace.launched("first", 4000, fault == With::Low ? 32 : 256);
  if (fault == With::Medium) trace.emit(trace.made(Event::Kind::BlockingCompile));
  if (fault == With::High) trace.synchronized();
  if (fault == With::Blocking) {
    trace.copied_out(8000);
    trace.copied_in(8000);
  }
  trace.launched("second");
  trace.dispatched("cuda");
  return trace.json();
}

// A program that declares no operation; with the fault, it does everything as CPU code does.
std::string undeclared_trace(bool faulty) {
  constexpr std::uint64_t kRows = 4U << 20;
  HandMadeTrace trace;
  if (!faulty) {
    trace.allocated(kRows);
    trace.copied_in(kRows);
  }
  for (int i = 0; i < 40; ++i) {
    if (faulty) trace.allocated(kRows);
    trace.launched("step", faulty ? 1 : 4096);
    if (!faulty) continue;
    trace.synchronized();
    trace.copied_out(kRows);
    trace.copied_in(kRows);
  }
  if (!faulty) trace.copied_out(kRows);
  return trace.json();
}

TEST_F(KilnProgram, AuditOfProgramWithoutOperationsHasFindingsAndAnswers) {
  write("t.json", undeclared_trace(true));
  const Ran ran = run({"audit", "t.json"});
  EXPECT_EQ(ran.exit_code, 13);
  for (const char* part :
       {"BLOCKING  host_step  thread 1, stream 1", "HIGH  many_tiny_launches", "HIGH  sync_per_item",
        "MEDIUM  allocation_in_loop", "Cleanups", "start with: host_step, then sync_per_item, then many_tiny_launches",
        "no operation was declared; 1 implicit operation", "Is this CPU-shaped GPU code?\n  supported: host_step in",
        "rows leave the device for a step on the host", "Write that step as a kernel", "40 by the caller",
        "defect: 40 reads, 160 MiB in thread 1, stream 1", "thread 1, stream 1: step ×40", "target 1"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  }
  write("repaired.json", undeclared_trace(false));
  const Ran repaired = run({"audit", "repaired.json", "--fail-on", "low"});
  EXPECT_EQ(repaired.exit_code, 0) << repaired.out;
  EXPECT_TRUE(repaired.out.starts_with("clean: no findings\n")) << repaired.out;
}

TEST_F(KilnProgram, AuditWithoutEvidenceIsInconclusive) {
  HandMadeTrace trace;
  trace.emit(trace.made(Event::Kind::Hit));
  write("t.json", trace.json());
  const Ran ran = run({"audit", "t.json", "--fail-on", "blocking"});
  EXPECT_EQ(ran.exit_code, 14);
  EXPECT_TRUE(
      ran.out.starts_with("inconclusive: no findings, but evidence is missing\n"
                          "missing: the trace has no launch, copy, wait or decision\n  to do: trace"))
      << ran.out;
  const auto json = run({"audit", "t.json", "--json"}).json();
  EXPECT_EQ(json["verdict"], "inconclusive");
  EXPECT_EQ(json["clean"], false);
  EXPECT_EQ(json["worst"], nullptr);
  EXPECT_EQ(json["missing"][0]["decisive"], true);
  EXPECT_EQ(json["cpu_shaped"]["answer"], "not enough evidence");
}

TEST_F(KilnProgram, AuditOfTwoTracesIsAGate) {
  write("clean.json", clean_trace());
  write("high.json", faulty_trace(With::High));
  write("low.json", faulty_trace(With::Low));
  EXPECT_EQ(run({"audit", "clean.json", "clean.json"}).exit_code, 0);
  EXPECT_NE(run({"audit", "clean.json", "clean.json"}).out.find("no regression"), std::string::npos);
  const Ran worse = run({"audit", "clean.json", "high.json"});
  EXPECT_EQ(worse.exit_code, 12);
  EXPECT_TRUE(worse.out.starts_with("regressed  test.pipeline\n")) << worse.out;
  EXPECT_NE(worse.out.find("HIGH sync_between_launches, new: 1 wait"), std::string::npos) << worse.out;
  EXPECT_EQ(run({"audit", "high.json", "clean.json"}).exit_code, 0);
  EXPECT_EQ(run({"audit", "clean.json", "high.json", "--fail-on", "blocking"}).exit_code, 15) << "more launches";
  EXPECT_EQ(run({"audit", "clean.json", "absent.json"}).exit_code, 1);
  EXPECT_EQ(run({"audit", "clean.json", "clean.json", "clean.json"}).exit_code, 2);
  const auto json = run({"audit", "clean.json", "high.json", "--json"}).json();
  EXPECT_EQ(json["regressed"], true);
  EXPECT_EQ(json["before"]["verdict"], "clean");
  EXPECT_EQ(json["after"]["verdict"], "findings");
  const auto& changes = json["changes"];
  EXPECT_TRUE(std::any_of(changes.begin(), changes.end(), [](const auto& change) {
    return change["rule"] == "sync_between_launches" && change["direction"] == "regressed";
  }));
}

TEST_F(KilnProgram, AuditExitCodeIsWorstSeverity) {
  write("clean.json", clean_trace());
  EXPECT_EQ(run({"audit", "clean.json"}).exit_code, 0);
  EXPECT_EQ(run({"audit", "clean.json", "--fail-on", "low"}).exit_code, 0);
  const std::pair<With, int> codes[] = {{With::Low, 10}, {With::Medium, 11}, {With::High, 12}, {With::Blocking, 13}};
  for (const auto& [fault, code] : codes) {
    write("t.json", faulty_trace(fault));
    EXPECT_EQ(run({"audit", "t.json", "--fail-on", "low"}).exit_code, code);
    EXPECT_EQ(run({"audit", "t.json"}).exit_code, fault == With::Low ? 0 : code);
    EXPECT_EQ(run({"audit", "t.json", "--fail-on", "blocking"}).exit_code, fault == With::Blocking ? code : 0);
  }
  EXPECT_EQ(run({"audit", "clean.json", "--fail-on", "nonsense"}).exit_code, 2);
  EXPECT_EQ(run({"audit"}).exit_code, 2);
}

TEST_F(KilnProgram, AuditPrintsFindingsFirstThenCauseAndChange) {
  write("t.json", faulty_trace(With::Blocking));
  const Ran ran = run({"audit", "t.json"});
  EXPECT_TRUE(ran.out.starts_with("Blockers: they limit the path on a GPU\n\nBLOCKING  host_step  test.pipeline\n"))
      << ran.out;
  for (const char* part :
       {"events 3, 4", "structural, in 1 run", "fix: write that step as a kernel", "start with: host_step",
        "a device made by hand", "auto requested, cuda selected", "1000 in the largest run",
        "acceleration rate 100.0 %", "What makes this path behave like CPU code?",
        "What is the smallest structural change that moves it back?"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part << "\n" << ran.out;
  }
  write("clean.json", clean_trace());
  EXPECT_TRUE(run({"audit", "clean.json"}).out.starts_with("clean: no findings\n"));
}

TEST_F(KilnProgram, AuditJsonContainsAllFields) {
  write("t.json", faulty_trace(With::High));
  const auto json = run({"audit", "t.json", "--json"}).json();
  EXPECT_EQ(json["trace"], "t.json");
  EXPECT_EQ(json["clean"], false);
  EXPECT_EQ(json["worst"], "HIGH");
  EXPECT_EQ(json["targets"][0]["rule"], "sync_between_launches");
  EXPECT_EQ(json["verdict"], "findings");
  EXPECT_EQ(json["waits"]["wrapper"]["count"], 1);
  EXPECT_EQ(json["operations"][0]["shape"], "first → second");
  EXPECT_EQ(json["cpu_shaped"]["answer"], "supported");
  EXPECT_EQ(json["findings"][0]["blocker"], true);
  EXPECT_EQ(json["stayed_on_device"], true);
  EXPECT_EQ(json["rows"], 1000);
  EXPECT_EQ(json["structural"], 1);
  EXPECT_EQ(json["incidental"], 0);
  EXPECT_EQ(json["dispatches"]["gpu"], 1);
  EXPECT_EQ(json["dispatches"]["acceleration_rate"], 1.0);
  EXPECT_EQ(json["decisions"][0]["requested"], "auto");
  ASSERT_EQ(json["findings"].size(), 1U);
  const auto& finding = json["findings"][0];
  EXPECT_EQ(finding["rule"], "sync_between_launches");
  EXPECT_EQ(finding["severity"], "HIGH");
  EXPECT_EQ(finding["step"], 3);
  EXPECT_EQ(finding["operation"], "test.pipeline");
  EXPECT_EQ(finding["structural"], true);
  EXPECT_EQ(finding["events"], nlohmann::json({3}));
  EXPECT_FALSE(finding["advice"].get<std::string>().empty());
  for (const char* name : {"command", "date", "reads", "missing", "launches", "format", "devices", "longest_stages",
                           "stages_synchronized", "cause", "change"}) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
}

TEST_F(KilnProgram, AuditRejectsInvalidTraceWithReason) {
  EXPECT_EQ(run({"audit", "absent.json"}).exit_code, 1);
  EXPECT_TRUE(run({"audit", "absent.json"}).says("KILN_TRACE"));
  write("other.json", R"({"traceEvents":[{"ph":"X","ts":1,"pid":1,"tid":1,"name":"k"}]})");
  const Ran other = run({"audit", "other.json"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_TRUE(other.says("neither a trace of kiln nor")) << other.err;
  std::string newer = clean_trace();
  newer.replace(newer.find("kiln trace 2"), 12, "kiln trace 9");
  write("newer.json", newer);
  EXPECT_EQ(run({"audit", "newer.json"}).exit_code, 3);
  EXPECT_TRUE(run({"audit", "newer.json"}).says("kiln trace 9"));
}

TEST_F(KilnProgram, DeviceUsageCountsRunsOverAllTraces) {
  HandMadeTrace fallen;
  fallen.begin("auto", "opencl");
  fallen.emit(fallen.made(runtime::events::kFellBack, "the device is lost"));
  fallen.dispatched("cpu");
  write("a.json", clean_trace());
  write("b.json", fallen.json());
  const Ran text = run({"device-usage", "a.json", "b.json"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("test.pipeline  2     1    0           1    1          50.0 %"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("test.pipeline fell back 1 time: the device is lost"), std::string::npos) << text.out;
  const auto json = run({"device-usage", "a.json", "b.json", "--json"}).json();
  EXPECT_EQ(json["traces"], 2);
  EXPECT_EQ(json["dispatches"]["total"], 2);
  EXPECT_EQ(json["dispatches"]["fallback"], 1);
  EXPECT_EQ(json["dispatches"]["acceleration_rate"], 0.5);
  EXPECT_EQ(json["operations"][0]["operation"], "test.pipeline");
  EXPECT_EQ(json["fallbacks"][0]["reason"], "the device is lost");
  EXPECT_EQ(json["fallbacks"][0]["count"], 1);
  const Ran some = run({"device-usage", "a.json", "absent.json"});
  EXPECT_EQ(some.exit_code, 1) << "readable traces are still counted";
  EXPECT_NE(some.out.find("100.0 %"), std::string::npos) << some.out;
}

}  // namespace
}  // namespace kiln::test
