// SPDX-License-Identifier: Apache-2.0
#include "analysis/audit/trace_reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/fixtures/traces.hpp"

namespace kiln::test {
namespace {

Event full_event() {
  Event event;
  event.kind = Event::Kind::Launched;
  event.unit = "within.cl";
  event.target = "sm_90";
  event.key = "0123";
  event.origin = "disk";
  event.message = "refine \"quoted\"\n";
  event.ms = 0.25;
  event.bytes = 4096;
  event.stream = 0x7f00deadbeef;
  event.task_id = 0x12;
  event.requested = "auto";
  event.selected = "cuda";
  event.grid_blocks = 77;
  event.block_threads = 128;
  event.suggested_block_threads = 256;
  event.shared_bytes = 2048;
  event.pinned = true;
  event.cpu_device = true;
  event.warm = false;
  event.details = {{"precision", "fp32"}};
  event.context = {"spatial.sjoin", "refine", 4, 3, 100'000, Residency::Device, Purpose::AllocationSize};
  return event;
}

std::string failure_reason(const std::string& text) {
  const auto trace = audit::parse_trace(text);
  return trace.has_value() ? "read" : trace.error().message;
}

TEST(TraceReader, EveryFieldRoundTrips) {
  TraceWriter writer;
  writer.on_event(full_event());
  const audit::Trace trace = audit::parse_trace(writer.json()).value();
  ASSERT_EQ(trace.events.size(), 1U);
  EXPECT_FALSE(trace.command.empty());
  EXPECT_FALSE(trace.date.empty());
  const audit::RecordedEvent& read = trace.events.front();
  const Event wanted = full_event();
  EXPECT_EQ(read.id, 1U);
  EXPECT_GT(read.thread, 0U);
  EXPECT_NEAR(read.end_ms - read.start_ms, 0.25, 0.03);
  EXPECT_EQ(read.event.kind, wanted.kind);
  EXPECT_EQ(read.event.unit, wanted.unit);
  EXPECT_EQ(read.event.target, wanted.target);
  EXPECT_EQ(read.event.key, wanted.key);
  EXPECT_EQ(read.event.origin, wanted.origin);
  EXPECT_EQ(read.event.message, wanted.message);
  EXPECT_EQ(read.event.ms, wanted.ms);
  EXPECT_EQ(read.event.bytes, wanted.bytes);
  EXPECT_EQ(read.event.stream, wanted.stream);
  EXPECT_EQ(read.event.task_id, wanted.task_id);
  EXPECT_EQ(read.event.requested, wanted.requested);
  EXPECT_EQ(read.event.selected, wanted.selected);
  EXPECT_EQ(read.event.grid_blocks, wanted.grid_blocks);
  EXPECT_EQ(read.event.block_threads, wanted.block_threads);
  EXPECT_EQ(read.event.suggested_block_threads, wanted.suggested_block_threads);
  EXPECT_EQ(read.event.shared_bytes, wanted.shared_bytes);
  EXPECT_EQ(read.event.pinned, wanted.pinned);
  EXPECT_EQ(read.event.cpu_device, wanted.cpu_device);
  EXPECT_EQ(read.event.warm, wanted.warm);
  EXPECT_EQ(read.event.details, wanted.details);
  EXPECT_EQ(read.event.context.operation, wanted.context.operation);
  EXPECT_EQ(read.event.context.stage, wanted.context.stage);
  EXPECT_EQ(read.event.context.dispatch, wanted.context.dispatch);
  EXPECT_EQ(read.event.context.workflow, wanted.context.workflow);
  EXPECT_EQ(read.event.context.rows, wanted.context.rows);
  EXPECT_EQ(read.event.context.residency, wanted.context.residency);
  EXPECT_EQ(read.event.context.purpose, wanted.context.purpose);
}

TEST(TraceReader, DetailsReplaceNoOtherArgument) {
  TraceWriter full;
  full.on_event(full_event());
  const nlohmann::json written = nlohmann::json::parse(full.json())["traceEvents"].back()["args"];
  ASSERT_GT(written.size(), 20U);
  for (const auto& [name, value] : written.items()) {
    if (name == "precision") continue;
    Event event = Event::of({"painter", "picture_drawn"});
    event.details = {{name, "forged"}, {"color", "red"}};
    TraceWriter writer;
    writer.on_event(event);
    const std::string text = writer.json();
    EXPECT_EQ(text.find("forged"), std::string::npos) << name;
    EXPECT_EQ(audit::parse_trace(text).value().events.front().event.detail("color"), "red") << name;
  }
}

TEST(TraceReader, ReadsProcessAndThreadNamesButNotStreams) {
  TraceWriter writer;
  writer.on_event(full_event());  // on a stream
  Event event;
  event.kind = Event::Kind::Miss;
  writer.on_event(event);
  const audit::Trace trace = audit::parse_trace(writer.json()).value();
  EXPECT_EQ(trace.process, "test_audit");
  EXPECT_EQ(trace.pid, static_cast<std::uint64_t>(getpid()));
  ASSERT_EQ(trace.threads.size(), 1U);
  EXPECT_EQ(trace.threads.begin()->first, trace.pid);
  EXPECT_FALSE(trace.threads.begin()->second.empty());
}

TEST(TraceReader, EveryEventKindRoundTripsInOrder) {
  TraceWriter writer;
  const unsigned last = static_cast<unsigned>(Event::Kind::Extension) - 1;
  for (unsigned kind = 0; kind <= last; ++kind) {
    Event event = full_event();
    event.kind = static_cast<Event::Kind>(kind);
    event.ms = kind % 3;  // events that end later but start earlier come first in the file
    writer.on_event(event);
  }
  const audit::Trace trace = audit::parse_trace(writer.json()).value();
  ASSERT_EQ(trace.events.size(), last + 1U);
  for (unsigned kind = 0; kind <= last; ++kind) {
    EXPECT_EQ(trace.events[kind].event.kind, static_cast<Event::Kind>(kind));
    EXPECT_EQ(trace.events[kind].id, kind + 1U);
  }
}

TEST(TraceReader, ExtensionsRoundTrip) {
  TraceWriter writer;
  const EventType others[] = {{"painter", "picture_drawn"}, {"painter", "hit"}};
  for (const EventType& type : runtime::events::kAll) writer.on_event(Event::of(type));
  for (const EventType& type : others) writer.on_event(Event::of(type));
  const audit::Trace trace = audit::parse_trace(writer.json()).value();
  EXPECT_EQ(trace.not_understood, 0U);
  ASSERT_EQ(trace.events.size(), runtime::events::kAll.size() + 2);
  for (std::size_t i = 0; i < runtime::events::kAll.size(); ++i) {
    EXPECT_TRUE(trace.events[i].event.is(runtime::events::kAll[i])) << i;
  }
  EXPECT_TRUE(trace.events[trace.events.size() - 2].event.is(others[0]));
  EXPECT_TRUE(trace.events.back().event.is(others[1])) << "a category separates it from kiln's own kind";
}

TEST(TraceReader, RuntimeEventsOfTracesWithoutCategoriesAreRead) {
  const std::string begin =
      R"({"traceEvents":[{"ph":"M","ts":0,"pid":1,"tid":1,"name":"kiln_trace","args":{"name":"kiln trace 2"}},)";
  const auto event = [](const std::string& name, int id) {
    return R"({"ph":"i","ts":1,"pid":1,"tid":1,"s":"t","cat":")" + name + R"(","name":")" + name +
           R"(","args":{"id":)" + std::to_string(id) + "}}";
  };
  const std::string text = begin + event("decided", 1) + ',' + event("picture_drawn", 2) + "]}";
  const audit::Trace trace = audit::parse_trace(text).value();
  ASSERT_EQ(trace.events.size(), 1U);
  EXPECT_TRUE(trace.events.front().event.is(runtime::events::kDecided));
  EXPECT_EQ(trace.not_understood, 1U) << "kiln does not know this kind";
}

TEST(TraceReader, DroppedEventsAreCounted) {
  TraceWriter writer(TraceWriter::Options{.max_events = 2});
  for (int i = 0; i < 7; ++i) writer.on_event(full_event());
  const audit::Trace trace = audit::parse_trace(writer.json()).value();
  EXPECT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.dropped, 5U);
}

TEST(TraceReader, OtherVersionsAreRejectedByName) {
  TraceWriter writer;
  writer.on_event(full_event());
  for (const char* version : {"kiln trace 1", "kiln trace 3"}) {
    std::string text = writer.json();
    text.replace(text.find("kiln trace 2"), 12, version);
    const auto trace = audit::parse_trace(text);
    ASSERT_FALSE(trace.has_value());
    EXPECT_EQ(trace.error().code, Code::Unsupported);
    EXPECT_NE(trace.error().message.find(version), std::string::npos) << trace.error().message;
    EXPECT_NE(trace.error().message.find("kiln trace 2"), std::string::npos);
  }
}

TEST(TraceReader, TracesOfOtherProgramsAreRejected) {
  const char* const others =
      R"({"traceEvents":[{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"cat":"gpu","name":"k","args":{"id":1}}]})";
  EXPECT_EQ(failure_reason(others).find("it is neither a trace of kiln nor one of PyTorch's profiler; name"), 0U);
  EXPECT_EQ(failure_reason(R"({"traceEvents":[]})"), "it is not a kiln trace");
  EXPECT_EQ(failure_reason("{}"), "it is not a kiln trace");
  EXPECT_EQ(failure_reason("[1, 2]"), "it is not a kiln trace");
}

TEST(TraceReader, HostileInputIsRejected) {
  EXPECT_NE(failure_reason(""), "read");
  EXPECT_NE(failure_reason(std::string("QD\0\1report", 10)).find("; if it is a report of Nsight Systems"),
            std::string::npos);
  EXPECT_NE(failure_reason("not json").find("invalid JSON"), std::string::npos);
  EXPECT_NE(failure_reason(std::string(5'000'000, '[')).find("deeply"), std::string::npos);
  EXPECT_NE(failure_reason(R"({"traceEvents":[)" + std::string(1'000'000, '[')).find("deeply"), std::string::npos);
  EXPECT_NE(failure_reason("{\"" + std::string(100'000, 'x') + "\":1}").find("too long"), std::string::npos);
  TraceWriter writer;
  writer.on_event(full_event());
  writer.on_event(full_event());
  std::string twice = writer.json();
  twice.replace(twice.find("\"id\":2"), 6, "\"id\":1");
  EXPECT_NE(failure_reason(twice).find("event id 1"), std::string::npos) << failure_reason(twice);
  const std::string whole = writer.json();
  for (std::size_t length = 0; length + 3 < whole.size(); length += 7) {
    EXPECT_NE(failure_reason(whole.substr(0, length)), "read") << "cut after " << length;
  }
}

TEST(TraceReader, InvalidNumbersAreIgnored) {
  TraceWriter writer;
  writer.on_event(full_event());
  const std::string whole = writer.json();
  for (const char* number :
       {"-1", "1e300", "18446744073709551615", "99999999999999999999", "null", "true", "[1]", "{}"}) {
    std::string text = whole;
    text.replace(text.find("\"bytes\":4096"), 12, std::string("\"bytes\":") + number);
    const auto trace = audit::parse_trace(text);
    ASSERT_TRUE(trace.has_value()) << number << ": " << trace.error().message;
    EXPECT_EQ(trace->events.size(), 1U) << number;
    (void)audit::run_audit(*trace);
  }
}

TEST(TraceReader, MissingFileNamesNextStep) {
  TemporaryDirectory directory;
  const auto absent = audit::read_trace(directory.path("t.json"));
  ASSERT_FALSE(absent.has_value());
  EXPECT_NE(absent.error().message.find("KILN_TRACE"), std::string::npos) << absent.error().message;
  EXPECT_FALSE(audit::read_trace(directory.path()).has_value()) << "a directory is not a trace";
  TraceWriter writer;
  writer.on_event(full_event());
  ASSERT_TRUE(writer.write(directory.path("t.json")));
  EXPECT_EQ(audit::read_trace(directory.path("t.json")).value().events.size(), 1U);
}

}  // namespace
}  // namespace kiln::test
