// SPDX-License-Identifier: Apache-2.0
#include <kiln/operation_context.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "events/event_emitter.hpp"
#include "events/trace_writer.hpp"
#include "support/fixtures/perfetto_rules.hpp"

namespace kiln {
namespace {

OperationContext joining(std::uint64_t dispatch) {
  OperationContext work;
  work.operation = "spatial.sjoin";
  work.stage = "refine";
  work.dispatch = dispatch;
  work.workflow = 7;
  work.rows = 1000;
  work.residency = Residency::Device;
  work.purpose = Purpose::AllocationSize;
  return work;
}

class WorkOfEvents : public ::testing::Test {
 protected:
  void emit(Event::Kind kind, const OperationContext& own = {}) {
    Event event;
    event.kind = kind;
    event.context = own;
    emitter_.emit(event);
  }
  std::vector<Event> reported_;
  const EventEmitter emitter_{[this](const Event& event) { reported_.push_back(event); }};
};

TEST_F(WorkOfEvents, ComesFromThreadScope) {
  const OperationScope scope(joining(3));
  emit(Event::Kind::Copied);
  EXPECT_EQ(reported_.at(0).context.operation, "spatial.sjoin");
  EXPECT_EQ(reported_.at(0).context.dispatch, 3u);
  EXPECT_EQ(reported_.at(0).context.residency, Residency::Device);
}

TEST_F(WorkOfEvents, InnermostScopeApplies) {
  {
    const OperationScope outer(joining(1));
    {
      const OperationScope inner(joining(2));
      emit(Event::Kind::Copied);
    }
    emit(Event::Kind::Copied);
  }
  emit(Event::Kind::Copied);
  EXPECT_EQ(reported_.at(0).context.dispatch, 2u);
  EXPECT_EQ(reported_.at(1).context.dispatch, 1u);
  EXPECT_TRUE(reported_.at(2).context.operation.empty());
}

TEST_F(WorkOfEvents, InnerScopeStaysIfOuterEndsFirst) {
  const OperationScope program(joining(1));
  auto outer = std::make_unique<OperationScope>(joining(2));
  auto inner = std::make_unique<OperationScope>(joining(3));
  OperationScope::count_launch();
  outer.reset();
  emit(Event::Kind::Copied);
  EXPECT_EQ(reported_.at(0).context.dispatch, 3u);
  inner.reset();
  emit(Event::Kind::Copied);
  EXPECT_EQ(reported_.at(1).context.dispatch, 1u);
  EXPECT_EQ(program.launches(), 1u);
}

TEST_F(WorkOfEvents, ScopeBelongsToItsThread) {
  const OperationScope scope(joining(1));
  EXPECT_TRUE(scope.is_of_this_thread());
  std::thread([&] { EXPECT_FALSE(scope.is_of_this_thread()); }).join();
}

TEST_F(WorkOfEvents, NewRunHasNewIdInsideTheSameDecision) {
  const OperationScope workflow(joining(1));
  const OperationContext run = OperationContext::new_run("spatial.area", 5, Residency::Host);
  EXPECT_EQ(run.operation, "spatial.area");
  EXPECT_EQ(run.workflow, 7u);
  EXPECT_TRUE(run.stage.empty());
  EXPECT_EQ(run.purpose, Purpose::Unspecified);
  EXPECT_GT(OperationContext::new_run("spatial.area").dispatch, run.dispatch);
  const OperationScope scope(run);
  const OperationScope stage(OperationContext::in_stage("sum"));
  const OperationContext copy = OperationContext::with_purpose(Purpose::Materialize);
  EXPECT_EQ(copy.dispatch, run.dispatch);
  EXPECT_EQ(copy.stage, "sum");
  EXPECT_EQ(copy.purpose, Purpose::Materialize);
}

TEST_F(WorkOfEvents, IsThreadLocal) {
  const OperationScope scope(joining(1));
  std::thread([&] { emit(Event::Kind::Compiled); }).join();
  EXPECT_TRUE(reported_.at(0).context.operation.empty());
}

TEST_F(WorkOfEvents, EventContextTakesPrecedence) {
  const OperationScope scope(joining(1));
  emit(Event::Kind::Copied, joining(9));
  EXPECT_EQ(reported_.at(0).context.dispatch, 9u);
}

TEST_F(WorkOfEvents, PassesThroughCallback) {
  const OperationScope scope(joining(4));
  emitter_.callback()(Event{});
  EXPECT_EQ(reported_.at(0).context.dispatch, 4u);
  EXPECT_FALSE(EventEmitter().callback()) << "without listeners there is no callback";
}

TEST(TraceRecord, ContainsOperationContext) {
  TraceWriter writer;
  Event launched;
  launched.kind = Event::Kind::Launched;
  launched.grid_blocks = 16;
  launched.block_threads = 64;
  launched.suggested_block_threads = 256;
  launched.context = joining(3);
  writer.on_event(launched);
  Event decided = Event::of({"runtime", "decided"});
  decided.requested = "auto";
  decided.selected = "opencl";
  writer.on_event(decided);
  const std::string text = writer.json();
  EXPECT_TRUE(test::trace_problems(text).empty());
  nlohmann::json arguments[2];
  const auto trace =
      nlohmann::json::parse(text);  // a named variable, because a range-for would not extend its lifetime
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "M") arguments[event["cat"] == "decided" ? 1 : 0] = event["args"];
  }
  const nlohmann::json wanted = {{"id", 1},
                                 {"grid_blocks", 16},
                                 {"block_threads", 64},
                                 {"suggested_block_threads", 256},
                                 {"operation", "spatial.sjoin"},
                                 {"stage", "refine"},
                                 {"dispatch", 3},
                                 {"workflow", 7},
                                 {"rows", 1000},
                                 {"residency", "device"},
                                 {"purpose", "allocation_size"}};
  for (const auto& [name, value] : wanted.items()) EXPECT_EQ(arguments[0][name], value) << name;
  EXPECT_EQ(arguments[1]["id"], 2);
  EXPECT_EQ(arguments[1]["requested"], "auto");
  EXPECT_EQ(arguments[1]["selected"], "opencl");
}

TEST(TraceRecord, ContainsFormatCommandAndDate) {
  const auto trace = nlohmann::json::parse(TraceWriter().json());
  const nlohmann::json about = trace["traceEvents"].at(1);
  EXPECT_EQ(about["name"], "kiln_trace");
  EXPECT_EQ(about["args"]["name"], "kiln trace 2");
  EXPECT_NE(about["args"]["command"].get<std::string>().find("test_"), std::string::npos);
  EXPECT_EQ(about["args"]["date"].get<std::string>().size(), std::string("2026-11-15T18:20:00Z").size());
}

}  // namespace
}  // namespace kiln
