#include <kiln/work.hpp>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "observe/observer.hpp"
#include "observe/trace.hpp"
#include "support/perfetto_rules.hpp"

namespace kiln {
namespace {

Work joining(std::uint64_t dispatch) {
  Work work;
  work.operation = "spatial.sjoin";
  work.stage = "refine";
  work.dispatch = dispatch;
  work.workflow = 7;
  work.rows = 1000;
  work.residency = Residency::Device;
  work.purpose = Purpose::Size;
  return work;
}

class WorkOfEvents : public ::testing::Test {
 protected:
  void tell(Event::Kind kind, const Work& own = {}) {
    Event event;
    event.kind = kind;
    event.work = own;
    observer_.tell(event);
  }
  std::vector<Event> told_;
  const Observer observer_{[this](const Event& event) { told_.push_back(event); }};
};

TEST_F(WorkOfEvents, IsWhatTheThreadSaysThatItDoes) {
  const WorkScope scope(joining(3));
  tell(Event::Kind::Copied);
  EXPECT_EQ(told_.at(0).work.operation, "spatial.sjoin");
  EXPECT_EQ(told_.at(0).work.dispatch, 3u);
  EXPECT_EQ(told_.at(0).work.residency, Residency::Device);
}

TEST_F(WorkOfEvents, IsTheInnermostAndThenAgainTheOuterOne) {
  {
    const WorkScope outer(joining(1));
    {
      const WorkScope inner(joining(2));
      tell(Event::Kind::Copied);
    }
    tell(Event::Kind::Copied);
  }
  tell(Event::Kind::Copied);
  EXPECT_EQ(told_.at(0).work.dispatch, 2u);
  EXPECT_EQ(told_.at(1).work.dispatch, 1u);
  EXPECT_TRUE(told_.at(2).work.operation.empty());
}

TEST_F(WorkOfEvents, IsNotThatOfAnotherThread) {
  const WorkScope scope(joining(1));
  std::thread([&] { tell(Event::Kind::Compiled); }).join();
  EXPECT_TRUE(told_.at(0).work.operation.empty());
}

TEST_F(WorkOfEvents, IsTheEventsOwnWhereItNamesOne) {
  const WorkScope scope(joining(1));
  tell(Event::Kind::Dispatched, joining(9));
  EXPECT_EQ(told_.at(0).work.dispatch, 9u);
}

TEST_F(WorkOfEvents, GoesThroughTheCallbackThatOthersTellBy) {
  const WorkScope scope(joining(4));
  observer_.callback()(Event{});
  EXPECT_EQ(told_.at(0).work.dispatch, 4u);
  EXPECT_FALSE(Observer().callback()) << "where nobody listens there is nothing to call";
}

TEST(TraceRecord, SaysWhatWasDoneForWhichOperation) {
  TraceWriter writer;
  Event launched;
  launched.kind = Event::Kind::Launched;
  launched.blocks = 16;
  launched.block = 64;
  launched.advised = 256;
  launched.work = joining(3);
  writer.tell(launched);
  Event decided;
  decided.kind = Event::Kind::Decided;
  decided.requested = "auto";
  decided.selected = "opencl";
  writer.tell(decided);
  const std::string text = writer.json();
  EXPECT_TRUE(test::trace_problems(text).empty());
  nlohmann::json arguments[2];
  const auto trace = nlohmann::json::parse(text);  // named, because a loop would not keep it
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "M") arguments[event["cat"] == "decided" ? 1 : 0] = event["args"];
  }
  const nlohmann::json wanted = {
      {"id", 1},           {"blocks", 16},  {"block", 64},   {"advised", 256}, {"operation", "spatial.sjoin"},
      {"stage", "refine"}, {"dispatch", 3}, {"workflow", 7}, {"rows", 1000},   {"residency", "device"},
      {"purpose", "size"}};
  for (const auto& [name, value] : wanted.items()) EXPECT_EQ(arguments[0][name], value) << name;
  EXPECT_EQ(arguments[1]["id"], 2);
  EXPECT_EQ(arguments[1]["requested"], "auto");
  EXPECT_EQ(arguments[1]["selected"], "opencl");
}

TEST(TraceRecord, NamesItsFormatTheCommandAndTheDate) {
  const auto trace = nlohmann::json::parse(TraceWriter().json());
  const nlohmann::json about = trace["traceEvents"].at(1);
  EXPECT_EQ(about["name"], "kiln_trace");
  EXPECT_EQ(about["args"]["name"], "kiln trace 1");
  EXPECT_NE(about["args"]["command"].get<std::string>().find("test_"), std::string::npos);
  EXPECT_EQ(about["args"]["date"].get<std::string>().size(), std::string("2026-11-15T18:20:00Z").size());
}

}  // namespace
}  // namespace kiln
