// SPDX-License-Identifier: Apache-2.0
#include "events/trace_writer.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/fixtures/files.hpp"
#include "support/fixtures/perfetto_rules.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;

// A clock that tests advance explicitly.
class StillClock final : public Clock {
 public:
  std::chrono::nanoseconds wall() const override { return now; }
  std::chrono::nanoseconds steady() const override { return now; }
  void sleep(std::chrono::nanoseconds) const override {}
  std::chrono::nanoseconds now = std::chrono::hours(24);
};

Event event(Event::Kind kind, double ms = 0, std::uint64_t flow = 0, std::uint64_t stream = 0) {
  Event reported;
  reported.kind = kind;
  reported.unit = "saxpy";
  reported.ms = ms;
  reported.task_id = flow;
  reported.stream = stream;
  return reported;
}

std::vector<Json> events_of(const std::string& text, const std::string& phase, const std::string& category = "") {
  std::vector<Json> found;
  const Json trace = Json::parse(text);
  for (const Json& one : trace["traceEvents"]) {
    if (one["ph"] == phase && (category.empty() || one["cat"] == category)) found.push_back(one);
  }
  return found;
}

std::string track_name(const std::string& text, const Json& of) {
  for (const Json& one : events_of(text, "M")) {
    if (one["name"] == "thread_name" && one["tid"] == of["tid"]) return one["args"]["name"];
  }
  return "";
}

class Trace : public ::testing::Test {
 protected:
  void emit(std::chrono::nanoseconds after, const Event& reported) {
    clock_.now += after;
    writer_.on_event(reported);
  }
  std::string json() const {
    const std::string text = writer_.json();
    const auto problems = test::trace_problems(text);
    EXPECT_TRUE(problems.empty()) << problems.size() << ", first: " << problems.front();
    return text;
  }
  StillClock clock_;
  TraceWriter writer_{TraceWriter::Options{}, clock_};
};

TEST_F(Trace, EmptyTraceIsValid) { EXPECT_TRUE(events_of(json(), "X").empty()); }

TEST_F(Trace, SliceEndsAtEventTime) {
  emit(milliseconds(1), event(Event::Kind::Requested));
  emit(milliseconds(9), event(Event::Kind::Compiled, 5));
  const std::string text = json();
  const auto slices = events_of(text, "X");
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0]["ts"], 4000) << "9 ms after the first event, less its 5 ms";
  EXPECT_EQ(slices[0]["dur"], 5000);
  EXPECT_EQ(slices[0]["cat"], "compiled");
  EXPECT_EQ(slices[0]["name"], "compiled saxpy");
  EXPECT_EQ(slices[0]["args"]["unit"], "saxpy");
  EXPECT_EQ(slices[0]["pid"], getpid());
  EXPECT_EQ(slices[0]["tid"], gettid());
}

TEST_F(Trace, EventWithoutDurationIsInstant) {
  emit(milliseconds(1), event(Event::Kind::Miss));
  const auto instants = events_of(json(), "i");
  ASSERT_EQ(instants.size(), 1u);
  EXPECT_EQ(instants[0]["cat"], "miss");
}

TEST_F(Trace, NamesThreads) {
  std::thread other([&] {
    pthread_setname_np(pthread_self(), "kiln-compile-0");
    writer_.on_event(event(Event::Kind::Compiled, 1));
  });
  other.join();
  emit(milliseconds(1), event(Event::Kind::ClaimWaited, 1));
  const std::string text = json();
  const Json compiled = events_of(text, "X", "compiled").at(0);
  EXPECT_EQ(track_name(text, compiled), "kiln-compile-0");
  EXPECT_NE(compiled["tid"], events_of(text, "X", "claim_waited").at(0)["tid"]);
}

TEST_F(Trace, ShowsStreamEventsOnStreamTrack) {
  emit(milliseconds(1), event(Event::Kind::Launched, 0.01, 0, 0xABC));
  emit(milliseconds(1), event(Event::Kind::Copied, 0.5, 0, 0xABC));
  emit(milliseconds(1), event(Event::Kind::Synchronized, 0.5, 0, 0));
  const std::string text = json();
  const Json launched = events_of(text, "X", "launched").at(0);
  EXPECT_EQ(track_name(text, launched), "stream 0xabc");
  EXPECT_EQ(launched["args"]["thread"], gettid());
  EXPECT_EQ(events_of(text, "X", "copied").at(0)["tid"], launched["tid"]);
  EXPECT_EQ(track_name(text, events_of(text, "X", "synchronized").at(0)), "default stream");
  EXPECT_GT(launched["tid"].get<std::int64_t>(), 1 << 22) << "thread ids end there";
}

TEST_F(Trace, StatesWhetherCallUsedCompiledAlgorithm) {
  Event called = event(Event::Kind::CalledCompiled, 0.01, 0, 0);
  called.warm = true;
  emit(milliseconds(1), called);
  Event fallback = event(Event::Kind::CalledFallback, 0, 0, 0);
  fallback.warm = false;
  emit(milliseconds(1), fallback);
  emit(milliseconds(1), event(Event::Kind::Launched, 0.01, 0, 0));
  const std::string text = json();
  const Json compiled = events_of(text, "X", "called_compiled").at(0);
  EXPECT_EQ(compiled["args"]["warm"], true);
  EXPECT_EQ(track_name(text, compiled), "default stream") << "it is work on a stream, as a launch is";
  EXPECT_EQ(events_of(text, "i", "called_fallback").at(0)["args"]["warm"], false);
  EXPECT_FALSE(events_of(text, "X", "launched").at(0)["args"].contains("warm")) << "it does not apply to a kernel";
}

TEST_F(Trace, ConnectsRequestToFirstLaunch) {
  emit(milliseconds(1), event(Event::Kind::Requested, 0, 77));
  std::thread([&] { emit(milliseconds(9), event(Event::Kind::Compiled, 5, 77)); }).join();
  emit(milliseconds(2), event(Event::Kind::Published, 0, 77));
  emit(milliseconds(2), event(Event::Kind::Loaded, 1, 77));
  emit(milliseconds(2), event(Event::Kind::Launched, 0.01, 77, 5));
  emit(milliseconds(2), event(Event::Kind::Launched, 0.01, 77, 5));
  const Json trace = Json::parse(json());
  std::string way;
  std::set<Json> ids;
  std::string slice;
  for (const Json& one : trace["traceEvents"]) {
    const std::string phase = one["ph"];
    if (phase == "X") slice = one["cat"];
    if (phase != "s" && phase != "t" && phase != "f") continue;
    way += phase + ' ' + slice + ' ';
    ids.insert(one["id"]);
  }
  EXPECT_EQ(way, "s requested t compiled t loaded f launched ");
  EXPECT_EQ(ids.size(), 1u);
}

TEST_F(Trace, HasNoArrowBackToRequest) {
  emit(milliseconds(5), event(Event::Kind::Compiled, 4, 1));
  emit(milliseconds(1), event(Event::Kind::Requested, 0, 1));
  EXPECT_TRUE(events_of(json(), "f").empty());
}

TEST_F(Trace, HasNoArrowForSingleEvent) {
  emit(milliseconds(1), event(Event::Kind::Requested, 0, 1));
  emit(milliseconds(1), event(Event::Kind::Requested, 0, 2));
  EXPECT_TRUE(events_of(json(), "s").empty());
}

TEST_F(Trace, NestsEnclosedEvents) {
  emit(milliseconds(5), event(Event::Kind::Compiled, 4));
  emit(milliseconds(5), event(Event::Kind::BlockingCompile, 10));
  const std::string text = json();
  EXPECT_EQ(events_of(text, "X", "compiled").at(0)["tid"], events_of(text, "X", "blocking_compile").at(0)["tid"]);
}

TEST_F(Trace, PutsOverlappingEventsOnSeparateTracks) {
  emit(milliseconds(5), event(Event::Kind::Synchronized, 4, 0, 9));
  emit(milliseconds(2), event(Event::Kind::Synchronized, 4, 0, 9));
  const std::string text = json();
  const auto slices = events_of(text, "X");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(track_name(text, slices[0]), "stream 0x9");
  EXPECT_EQ(track_name(text, slices[1]), "stream 0x9 (2)");
}

TEST_F(Trace, ToleratesSlightlyLateEvents) {
  emit(milliseconds(5), event(Event::Kind::Compiled, 4));
  emit(milliseconds(2), event(Event::Kind::Loaded, 2.003));  // started 3 µs before the compile event was emitted
  const auto slices = events_of(json(), "X");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0]["tid"], slices[1]["tid"]);
  EXPECT_EQ(slices[1]["args"]["ms"], 2.003) << "the measured duration is unchanged";
}

TEST_F(Trace, AcceptsArbitraryBytesAsText) {
  Event odd = event(Event::Kind::Compiled, 1);
  odd.unit = "q\" b\\ n\n t\t nul" + std::string(1, '\0') + " del\x7F bell\a cut\xE2\x82 \xFF\xC0\xAF\xED\xA0\x80 ü";
  odd.message = std::string(100'000, 'x');
  emit(milliseconds(1), odd);
  const std::string text = json();
  EXPECT_LT(text.size(), 10'000u) << "compiler logs are truncated";
  const std::string name = events_of(text, "X").at(0)["args"]["unit"];
  EXPECT_EQ(name.substr(0, 15), "q\" b\\ n\n t\t nul");
  EXPECT_NE(name.find("bell\uFFFD cut\uFFFD"), std::string::npos)
      << "invalid bytes are replaced, not dropped: " << name;
  EXPECT_EQ(name.substr(name.size() - 2), "ü");
}

TEST_F(Trace, KeepsValidUnicodeAndReplacesInvalid) {
  Event odd = event(Event::Kind::Compiled, 1);
  odd.unit = "r\r \U0001F525 \U0010FFFF long\xF0\x80\x80\x80 far\xF4\x90\x80\x80 cut\xF0\x9F\x94";
  emit(milliseconds(1), odd);
  const std::string name = events_of(json(), "X").at(0)["args"]["unit"];
  EXPECT_EQ(name.find("r\r \U0001F525 \U0010FFFF long\uFFFD"), 0U) << name;
  EXPECT_NE(name.find("far\uFFFD"), std::string::npos) << name;
  EXPECT_NE(name.find("cut\uFFFD"), std::string::npos) << name;
}

TEST_F(Trace, ExtensionIsShownByItsNameAndCategory) {
  Event drawn = Event::of({"painter", "picture_drawn"});
  drawn.unit = "a.cu";
  emit(milliseconds(1), drawn);
  const auto written = events_of(json(), "i").at(0);
  EXPECT_EQ(written["cat"], "picture_drawn");
  EXPECT_EQ(written["name"], "picture_drawn a.cu");
  EXPECT_EQ(written["args"]["category"], "painter");
}

TEST_F(Trace, AcceptsInvalidDurations) {
  for (const double ms : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -3.0,
                          std::numeric_limits<double>::max()}) {
    emit(milliseconds(1), event(Event::Kind::Compiled, ms));
  }
  json();
}

TEST_F(Trace, RandomTracesFollowRules) {
  std::mt19937 random(4);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  for (int round = 0; round < 50; ++round) {
    TraceWriter writer(TraceWriter::Options{}, clock_);
    for (int i = 0; i < 200; ++i) {
      // Bursts within one tick, and durations about as long as the gaps.
      clock_.now += std::chrono::nanoseconds(below(4) == 0 ? below(200'000) : below(60));
      const auto kind = static_cast<Event::Kind>(below(static_cast<unsigned>(Event::Kind::Extension) + 1));
      writer.on_event(event(kind, below(3) == 0 ? 0 : below(300) / 1000.0, below(6), below(3)));
    }
    const auto problems = test::trace_problems(writer.json());
    ASSERT_TRUE(problems.empty()) << "round " << round << ": " << problems.front();
  }
}

TEST_F(Trace, StoresFirstEventsAndCountsDropped) {
  TraceWriter small({.max_events = 3}, clock_);
  for (int i = 0; i < 10; ++i) small.on_event(event(Event::Kind::Hit, 0.001));
  const std::string text = small.json();
  EXPECT_TRUE(test::trace_problems(text).empty());
  EXPECT_EQ(events_of(text, "X").size(), 3u);
  EXPECT_NE(text.find("7 later events are missing"), std::string::npos);
}

TEST_F(Trace, WritesFileAtomically) {
  const test::TemporaryDirectory directory;
  emit(milliseconds(1), event(Event::Kind::Hit, 1));
  ASSERT_TRUE(writer_.write(directory.path("trace.json")));
  emit(milliseconds(1), event(Event::Kind::Hit, 1));
  ASSERT_TRUE(writer_.write(directory.path("trace.json"))) << "it can be written again";
  EXPECT_EQ(test::read_text(directory.path("trace.json")), json());
  EXPECT_EQ(test::files_below(directory.path()).size(), 1u);
  EXPECT_FALSE(writer_.write(directory.path("absent/trace.json")));
}

TEST(TraceThreads, EmitConcurrentlyWithWrite) {
  TraceWriter writer;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < 500; ++n) writer.on_event(event(Event::Kind::Launched, 0.001, n, 1 + n % 2));
    });
  }
  EXPECT_TRUE(test::trace_problems(writer.json()).empty());
  for (std::thread& thread : threads) thread.join();
  const auto problems = test::trace_problems(writer.json());
  EXPECT_TRUE(problems.empty()) << problems.front();
  EXPECT_EQ(events_of(writer.json(), "X").size(), 2000u);
}

}  // namespace
}  // namespace kiln
