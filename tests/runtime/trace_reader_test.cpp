#include "runtime/trace_reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/files.hpp"
#include "support/temporary_directory.hpp"
#include "support/traces.hpp"

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
  event.flow = 0x12;
  event.requested = "auto";
  event.selected = "cuda";
  event.blocks = 77;
  event.block = 128;
  event.advised = 256;
  event.work = {"spatial.sjoin", "refine", 4, 3, 100'000, Residency::Device, Purpose::Size};
  return event;
}

std::string why_not(const std::string& text) {
  const auto trace = audit::parse_trace(text);
  return trace.ok() ? "read" : trace.error().message;
}

TEST(TraceReader, EveryFieldThatTheWriterWritesIsReadBack) {
  TraceWriter writer;
  writer.tell(full_event());
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
  EXPECT_EQ(read.event.flow, wanted.flow);
  EXPECT_EQ(read.event.requested, wanted.requested);
  EXPECT_EQ(read.event.selected, wanted.selected);
  EXPECT_EQ(read.event.blocks, wanted.blocks);
  EXPECT_EQ(read.event.block, wanted.block);
  EXPECT_EQ(read.event.advised, wanted.advised);
  EXPECT_EQ(read.event.work.operation, wanted.work.operation);
  EXPECT_EQ(read.event.work.stage, wanted.work.stage);
  EXPECT_EQ(read.event.work.dispatch, wanted.work.dispatch);
  EXPECT_EQ(read.event.work.workflow, wanted.work.workflow);
  EXPECT_EQ(read.event.work.rows, wanted.work.rows);
  EXPECT_EQ(read.event.work.residency, wanted.work.residency);
  EXPECT_EQ(read.event.work.purpose, wanted.work.purpose);
}

TEST(TraceReader, TheProcessAndItsThreadsHaveTheirNamesAndStreamsAreNoThreads) {
  TraceWriter writer;
  writer.tell(full_event());  // on a stream
  Event event;
  event.kind = Event::Kind::Miss;
  writer.tell(event);
  const audit::Trace trace = audit::parse_trace(writer.json()).value();
  EXPECT_EQ(trace.process, "test_runtime_audit");
  EXPECT_EQ(trace.number, static_cast<std::uint64_t>(getpid()));
  ASSERT_EQ(trace.threads.size(), 1U);
  EXPECT_EQ(trace.threads.begin()->first, trace.number);
  EXPECT_FALSE(trace.threads.begin()->second.empty());
}

TEST(TraceReader, EveryKindOfEventIsReadBackInTheOrderInWhichItWasTold) {
  TraceWriter writer;
  const unsigned last = static_cast<unsigned>(Event::Kind::MemoryTrimmed);
  for (unsigned kind = 0; kind <= last; ++kind) {
    Event event = full_event();
    event.kind = static_cast<Event::Kind>(kind);
    event.ms = kind % 3;  // later events that began earlier stand before them in the file
    writer.tell(event);
  }
  const audit::Trace trace = audit::parse_trace(writer.json()).value();
  ASSERT_EQ(trace.events.size(), last + 1U);
  for (unsigned kind = 0; kind <= last; ++kind) {
    EXPECT_EQ(trace.events[kind].event.kind, static_cast<Event::Kind>(kind));
    EXPECT_EQ(trace.events[kind].id, kind + 1U);
  }
}

TEST(TraceReader, WhatTheWriterDroppedIsCounted) {
  TraceWriter writer(TraceWriter::Options{.most_events = 2});
  for (int i = 0; i < 7; ++i) writer.tell(full_event());
  const audit::Trace trace = audit::parse_trace(writer.json()).value();
  EXPECT_EQ(trace.events.size(), 2U);
  EXPECT_EQ(trace.dropped, 5U);
}

TEST(TraceReader, OtherVersionsAreRefusedByName) {
  TraceWriter writer;
  writer.tell(full_event());
  for (const char* version : {"kiln trace 2", "kiln trace 0"}) {
    std::string text = writer.json();
    text.replace(text.find("kiln trace 1"), 12, version);
    const auto trace = audit::parse_trace(text);
    ASSERT_FALSE(trace.ok());
    EXPECT_EQ(trace.error().code, Code::Unsupported);
    EXPECT_NE(trace.error().message.find(version), std::string::npos) << trace.error().message;
    EXPECT_NE(trace.error().message.find("kiln trace 1"), std::string::npos);
  }
}

TEST(TraceReader, TracesOfOthersAreNamedAsSuch) {
  const char* const others =
      R"({"traceEvents":[{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"cat":"gpu","name":"k","args":{"id":1}}]})";
  EXPECT_EQ(why_not(others), "it is not a trace of kiln's");
  EXPECT_EQ(why_not(R"({"traceEvents":[]})"), "it is not a trace of kiln's");
  EXPECT_EQ(why_not("{}"), "it is not a trace of kiln's");
  EXPECT_EQ(why_not("[1, 2]"), "it is not a trace of kiln's");
}

TEST(TraceReader, HostileInputIsRefusedAndNothingElse) {
  EXPECT_NE(why_not(""), "read");
  EXPECT_NE(why_not("not json").find("no JSON"), std::string::npos);
  EXPECT_NE(why_not(std::string(5'000'000, '[')).find("deeper"), std::string::npos);
  EXPECT_NE(why_not(R"({"traceEvents":[)" + std::string(1'000'000, '[')).find("deeper"), std::string::npos);
  EXPECT_NE(why_not("{\"" + std::string(100'000, 'x') + "\":1}").find("too long"), std::string::npos);
  TraceWriter writer;
  writer.tell(full_event());
  writer.tell(full_event());
  std::string twice = writer.json();
  twice.replace(twice.find("\"id\":2"), 6, "\"id\":1");
  EXPECT_NE(why_not(twice).find("number 1"), std::string::npos) << why_not(twice);
  const std::string whole = writer.json();
  for (std::size_t length = 0; length + 3 < whole.size(); length += 7) {
    EXPECT_NE(why_not(whole.substr(0, length)), "read") << "cut after " << length;
  }
}

TEST(TraceReader, NumbersThatAreNoneOfOursChangeNothing) {
  TraceWriter writer;
  writer.tell(full_event());
  const std::string whole = writer.json();
  for (const char* number :
       {"-1", "1e300", "18446744073709551615", "99999999999999999999", "null", "true", "[1]", "{}"}) {
    std::string text = whole;
    text.replace(text.find("\"bytes\":4096"), 12, std::string("\"bytes\":") + number);
    const auto trace = audit::parse_trace(text);
    ASSERT_TRUE(trace.ok()) << number << ": " << trace.error().message;
    EXPECT_EQ(trace->events.size(), 1U) << number;
    (void)audit::examine(*trace);
  }
}

TEST(TraceReader, AnAbsentFileSaysHowToMakeOne) {
  TemporaryDirectory folder;
  const auto absent = audit::read_trace(folder.path("t.json"));
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().message.find("KILN_TRACE"), std::string::npos) << absent.error().message;
  EXPECT_FALSE(audit::read_trace(folder.path()).ok()) << "a folder is none";
  TraceWriter writer;
  writer.tell(full_event());
  ASSERT_TRUE(writer.write(folder.path("t.json")));
  EXPECT_EQ(audit::read_trace(folder.path("t.json")).value().events.size(), 1U);
}

}  // namespace
}  // namespace kiln::test
