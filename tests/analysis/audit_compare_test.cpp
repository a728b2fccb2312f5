// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/audit_compare.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/fixtures/traces.hpp"

namespace kiln::test {
namespace {

using audit::Change;
using Changes = std::vector<std::string>;

// What a test varies between two traces of one program.
struct Program {
  int runs = 2;
  int passes = 4;
  int waits = 0;
  double stage_ms = 10;
  std::uint64_t bytes = 100'000;
  std::uint64_t rows = 1000;
  const char* where = "cuda";
};

audit::Report audit_of(const Program& program) {
  HandMadeTrace trace;
  for (int run = 0; run < program.runs; ++run) {
    const bool on_device = std::string(program.where) != "cpu";
    trace.begin("auto", program.where, Residency::Host, program.rows);
    if (on_device) {
      trace.copied_in(program.bytes);
      for (int pass = 0; pass < program.passes; ++pass) trace.launched("sort");
      for (int wait = 0; wait < program.waits; ++wait) trace.synchronized();
      trace.launched("fill");
    }
    trace.stage_finished("sort", on_device ? program.where : "host", program.stage_ms);
    trace.dispatched(program.where);
  }
  return trace.report();
}

Changes changes_of(const audit::Comparison& comparison) {
  Changes texts;
  for (const Change& each : comparison.changes) {
    std::string text = to_string(each.direction);
    text += std::string(" ") + to_string(each.kind);
    if (each.rule != nullptr) text += std::string(" ") + each.rule->name;
    texts.push_back(text);
  }
  return texts;
}

audit::Comparison compared(const Program& before, const Program& after) {
  return compare_audits(audit_of(before), audit_of(after));
}

TEST(AuditCompare, EqualTracesHaveNoChanges) {
  const audit::Comparison comparison = compared({}, {.runs = 5});
  EXPECT_EQ(changes_of(comparison), Changes()) << "numbers are per run";
  EXPECT_FALSE(comparison.regressed());
  EXPECT_EQ(comparison.worst_finding(), nullptr);
}

TEST(AuditCompare, NewFindingRegresses) {
  const audit::Comparison comparison = compared({}, {.waits = 1});
  EXPECT_EQ(changes_of(comparison), Changes({"regressed waits", "regressed finding sync_between_launches"}));
  ASSERT_NE(comparison.worst_finding(), nullptr);
  EXPECT_EQ(comparison.worst_finding()->severity, audit::Severity::High);
  EXPECT_EQ(changes_of(compared({.waits = 1}, {})),
            Changes({"improved waits", "improved finding sync_between_launches"}));
}

TEST(AuditCompare, MoreFrequentFindingRegresses) {
  const audit::Comparison comparison = compared({.waits = 1}, {.waits = 6});
  EXPECT_EQ(changes_of(comparison), Changes({"regressed waits", "regressed finding sync_between_launches"}));
}

TEST(AuditCompare, NumbersAndShapeAreCompared) {
  EXPECT_EQ(changes_of(compared({}, {.passes = 6})), Changes({"regressed launches", "changed shape"}));
  EXPECT_EQ(changes_of(compared({}, {.bytes = 150'000})), Changes({"regressed bytes_in"}));
  EXPECT_EQ(changes_of(compared({}, {.bytes = 50'000})), Changes({"improved bytes_in"}));
}

TEST(AuditCompare, SmallDifferencesAreNoise) {
  EXPECT_EQ(changes_of(compared({}, {.stage_ms = 12})), Changes()) << "20 %";
  EXPECT_EQ(changes_of(compared({}, {.stage_ms = 13})), Changes({"regressed stage_time"})) << "30 %";
  EXPECT_EQ(changes_of(compared({.stage_ms = 0.1}, {.stage_ms = 0.9})), Changes()) << "below 1 ms";
  EXPECT_EQ(changes_of(compared({}, {.bytes = 105'000})), Changes()) << "5 %";
}

TEST(AuditCompare, MoveToTheCpuRegresses) {
  const audit::Comparison comparison = compared({}, {.stage_ms = 10, .where = "cpu"});
  const Changes changes = changes_of(comparison);
  EXPECT_EQ(std::count(changes.begin(), changes.end(), "regressed place"), 2) << "the operation and its stage";
  EXPECT_TRUE(comparison.regressed());
}

TEST(AuditCompare, NumbersOfOtherRowsAreNotCompared) {
  const audit::Comparison comparison =
      compared({}, {.passes = 40, .stage_ms = 100, .bytes = 1'000'000, .rows = 10'000});
  EXPECT_EQ(changes_of(comparison), Changes({"changed shape"}));
  EXPECT_EQ(comparison.other_rows, Changes({"test.pipeline"}));
}

TEST(AuditCompare, OperationsOfOneTraceAreListed) {
  HandMadeTrace none;
  none.launched("other");
  const audit::Comparison comparison = compare_audits(audit_of({}), none.report());
  EXPECT_EQ(comparison.only_before, Changes({"test.pipeline"}));
  EXPECT_EQ(comparison.only_after, Changes({"thread 1, stream 1"}));
}

TEST(AuditCompare, MoreRequestsOfAnUndeclaredProgramAreNoRegression) {
  const auto server = [](int requests, int waits) {
    HandMadeTrace trace;
    for (int i = 0; i < requests; ++i) {
      trace.copied_in(100'000);
      trace.launched("layer");
      for (int wait = 0; wait < waits; ++wait) trace.synchronized();
    }
    return trace.report();
  };
  const audit::Comparison more = compare_audits(server(100, 0), server(200, 0));
  EXPECT_FALSE(more.regressed());
  EXPECT_EQ(more.other_launches, Changes({"thread 1, stream 1"}));
  EXPECT_TRUE(compare_audits(server(100, 0), server(200, 1)).regressed()) << "a new finding is one";
  EXPECT_TRUE(compare_audits(server(100, 0), server(100, 1)).regressed());
}

TEST(AuditCompare, NumbersAreNotComparedWithoutEvidence) {
  audit::Report after = audit_of({.passes = 40, .stage_ms = 100});
  after.missing.push_back({"copies", "record them", true});
  EXPECT_EQ(changes_of(compare_audits(audit_of({.waits = 1}), after)), Changes());
  audit::Report worse = audit_of({.waits = 1});
  worse.missing.push_back({"copies", "record them", true});
  EXPECT_EQ(changes_of(compare_audits(audit_of({}), worse)), Changes({"regressed finding sync_between_launches"}));
}

TEST(AuditCompare, MissingEvidenceIsNoted) {
  HandMadeTrace none;
  none.emit(none.made(Event::Kind::Hit));
  EXPECT_TRUE(compare_audits(audit_of({}), none.report()).lacks_evidence);
}

}  // namespace
}  // namespace kiln::test
