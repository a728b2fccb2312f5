// SPDX-License-Identifier: Apache-2.0
// Tests of the checker itself: it must detect each violated rule, or a passing trace would mean nothing.
#include "support/fixtures/perfetto_rules.hpp"

#include <gtest/gtest.h>

#include <string>

namespace kiln::test {
namespace {

const std::string kNames = R"({"ph":"M","ts":0,"pid":7,"tid":7,"name":"process_name","args":{"name":"p"}},)"
                           R"({"ph":"M","ts":0,"pid":7,"tid":7,"name":"thread_name","args":{"name":"t"}})";

std::string trace(const std::string& events) { return "{\"traceEvents\":[" + kNames + ',' + events + "]}"; }
std::string slice(const std::string& ts, const std::string& dur, const std::string& more = "") {
  return R"({"ph":"X","ts":)" + ts + R"(,"dur":)" + dur + R"(,"pid":7,"tid":7,"cat":"c","name":"n")" + more + "}";
}
std::string arrow(char phase, const std::string& ts, const std::string& more = R"(,"bp":"e")") {
  return std::string(R"({"ph":")") + phase + R"(","ts":)" + ts + R"(,"pid":7,"tid":7,"id":1,"cat":"flow","name":"n")" +
         more + "}";
}
std::string first_problem(const std::string& events) {
  const auto problems = trace_problems(trace(events));
  return problems.empty() ? "" : problems.front().substr(0, problems.front().find(": "));
}

TEST(PerfettoRules, AcceptValidTrace) {
  EXPECT_EQ(first_problem(slice("0", "10") + ',' + slice("2.125", "3") + ',' + slice("10", "1")), "");
  EXPECT_EQ(first_problem(slice("0", "1") + ',' + arrow('s', "0") + ',' + slice("2", "1") + ',' + arrow('t', "2") +
                          ',' + slice("3", "1") + ',' + arrow('f', "3")),
            "");
}

TEST(PerfettoRules, RejectOtherInput) {
  EXPECT_FALSE(trace_problems("").empty());
  EXPECT_FALSE(trace_problems("[]").empty());
  EXPECT_FALSE(trace_problems(R"({"traceEvents":[{"ph":"X","ts":NaN}]})").empty());
  EXPECT_FALSE(trace_problems("{\"traceEvents\":[{\"name\":\"\xFF\"}]}").empty());
}

TEST(PerfettoRules, DetectInvalidTimes) {
  EXPECT_EQ(first_problem(slice("0.1", "1")), "ts is not a multiple of 1/8 microsecond");
  EXPECT_EQ(first_problem(slice("-1", "1")), "ts is not a multiple of 1/8 microsecond");
  EXPECT_EQ(first_problem(slice("5", "1") + ',' + slice("4", "1")), "not in time order");
  EXPECT_EQ(first_problem(slice("5", "\"1\"")), "dur is not a number");
  EXPECT_EQ(first_problem(R"({"ph":"X","ts":0,"pid":7,"tid":7,"cat":"c","name":"n"})"),
            "dur is missing or not allowed");
}

TEST(PerfettoRules, DetectOverlappingSlices) {
  EXPECT_EQ(first_problem(slice("0", "10") + ',' + slice("5", "10")),
            "overlaps another slice without being nested in it");
  EXPECT_EQ(first_problem(slice("0", "10") + ',' + slice("0", "5")),
            "starts at the same time as another slice of the track");
  EXPECT_EQ(first_problem(slice("0", "0")), "a slice without duration");
}

TEST(PerfettoRules, DetectIncompleteArrows) {
  EXPECT_EQ(first_problem(slice("0", "1") + ',' + arrow('s', "0")), "flow 1 flow n has no end");
  EXPECT_EQ(first_problem(slice("0", "1") + ',' + arrow('f', "0")), "a flow starts twice or not at all");
  EXPECT_EQ(first_problem(slice("0", "1") + ',' + arrow('s', "1")), "a flow that does not follow its slice");
  EXPECT_EQ(first_problem(slice("0", "1") + ',' + arrow('s', "0", "")),
            "a flow that does not bind to the slice around it");
}

TEST(PerfettoRules, DetectUnsupportedFields) {
  EXPECT_EQ(first_problem(slice("0", "1", R"(,"extra":[1])")), "an array as extra");
  EXPECT_EQ(first_problem(slice("0", "1", R"(,"extra":"\u0001")")), "a \\u escape");
  EXPECT_EQ(first_problem(slice("0", "1", ",\"extra\":\"\x7F\"")), "a control character");
  EXPECT_EQ(first_problem(R"({"ph":"X","ts":0,"dur":1,"pid":7,"tid":-1,"cat":"c","name":"n"})"),
            "tid is not a positive 32-bit number");
  EXPECT_EQ(first_problem(R"({"ph":"X","ts":0,"dur":1,"pid":7,"tid":8,"cat":"c","name":"n"})"),
            "the track has no name");
  EXPECT_EQ(first_problem(R"({"ph":"Z","ts":0,"pid":7,"tid":7,"cat":"c","name":"n"})"), "an unknown phase");
}

}  // namespace
}  // namespace kiln::test
