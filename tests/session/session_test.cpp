// SPDX-License-Identifier: Apache-2.0
// Sessions on a real OpenCL device (PoCL).
#include <kiln/session.hpp>
#include <kiln/stream.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>
#include <vector>

#include "base/files/files.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/hang_timeout.hpp"

namespace kiln {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kItems = 1024;

Unit scale(const std::string& factor) {
  return Unit::opencl("scale_" + factor, "kernel void scale(global float* x) { x[get_global_id(0)] *= " + factor +
                                             "; }\n"
                                             "kernel void clear(global float* x) { x[get_global_id(0)] = 0; }")
      .with_entry("scale")
      .with_entry("clear");
}

// The tests share one cache: a build with PoCL takes a second.
class SessionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { cache = new test::TemporaryDirectory; }
  static void TearDownTestSuite() { delete cache; }

  static Session open(SessionOptions options = {}) {
    options.settings["cache.dir"] = cache->path();
    options.locked.insert("cache.dir");
    return Session::open(std::move(options)).value();
  }
  static std::vector<float> run(const Stream& stream, const Kernel& kernel) {
    std::vector<float> x(kItems, 2);
    Buffer buffer = stream.allocate(kItems * sizeof(float)).value();
    stream.upload(buffer, x.data(), kItems * sizeof(float)).value();
    kernel.launch({Grid(kItems / 64), Block(64), stream}, buffer).value();
    stream.download(x.data(), buffer, kItems * sizeof(float)).value();
    return x;
  }
  static test::TemporaryDirectory* cache;
};
test::TemporaryDirectory* SessionTest::cache = nullptr;

std::size_t threads() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

TEST_F(SessionTest, RequestedKernelComputesCorrectResult) {
  Session session = open();
  session.request({scale("3")});
  const Stream stream = session.stream(Backend::OpenCl).value();
  const KernelHandle handle = session.handle(scale("3"), "scale");
  const Kernel kernel = handle.get(seconds(60)).value();
  EXPECT_EQ(run(stream, kernel), std::vector<float>(kItems, 6));
  EXPECT_EQ(kernel.name(), "scale");
  EXPECT_NE(kernel.native(), nullptr);
  EXPECT_GT(kernel.occupancy().value().block_size, 0U);
  const SessionStatus status = session.status();
  EXPECT_EQ(status.submitted, 1U);
  EXPECT_EQ(status.compiled + status.cached, 1U);
}

TEST_F(SessionTest, HandleAndItsEqualsAreReadyAfterFirstGet) {
  Session session = open();
  const KernelHandle handle = session.handle(scale("3"), "scale");
  const KernelHandle copy = handle;
  EXPECT_FALSE(handle.ready());
  const void* native = handle.get(seconds(60)).value().native();
  EXPECT_TRUE(copy.ready());
  EXPECT_TRUE(session.handle(scale("3"), "scale").ready()) << "equal content in another Unit";
  EXPECT_EQ(session.get(scale("3"), "scale").value().native(), native);
  EXPECT_FALSE(session.handle(scale("3"), "clear").ready());
}

TEST_F(SessionTest, HandleKeepsSessionAlive) {
  std::optional<Session> session = open();
  const KernelHandle handle = session->handle(scale("3"), "scale");
  session.reset();
  EXPECT_TRUE(handle.get(seconds(60)).has_value());
}

TEST_F(SessionTest, RequestedUnitsAreAlwaysInStatus) {
  Session session = open();
  const Units units{scale("3"), scale("5")};
  session.request(units);
  std::size_t minimum = units.size();
  while (session.status().pending > 0) {
    minimum = std::min(minimum, session.status().submitted);
    // Polling without a pause starves the threads that need the lock, for minutes under a sanitizer.
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  EXPECT_EQ(minimum, units.size());
  EXPECT_EQ(session.status().compiled + session.status().cached, units.size());
}

TEST_F(SessionTest, UnitIsCountedOnceWhileDriverOfAnotherOpens) {
  // The thread that opens drivers is blocked by one that cannot be opened.
  std::atomic<bool> held_up{false};
  std::promise<void> enough;
  SessionOptions options;
  options.settings["driver"] = "libno_such_driver.so";
  options.on_event = [&, over = enough.get_future().share()](const Event& event) {
    if (event.kind != Event::Kind::NoDevice) return;
    held_up = true;
    (void)over.wait_for(test::kHangTimeout);
  };
  Session session = open(std::move(options));
  const Unit unit = scale("3");
  session.request({Unit::cuda("none.cu", "").with_entry("none"), unit});
  EXPECT_TRUE(test::eventually([&] { return held_up.load(); }));
  EXPECT_TRUE(session.get(unit, "scale", seconds(60)).has_value());
  EXPECT_TRUE(test::eventually([&] { return session.status().pending == 0; }, test::kHangTimeout / 2));
  const SessionStatus status = session.status();
  enough.set_value();
  EXPECT_EQ(status.submitted, 1U);
  EXPECT_EQ(status.units.size(), 1U);
}

TEST_F(SessionTest, GetLoadsKernelWhoseBytesWereRequestedBefore) {
  test::EventLog log;
  SessionOptions options;
  options.on_event = log.callback();
  Session session = open(options);
  const Stream stream = session.stream(Backend::OpenCl).value();
  ASSERT_TRUE(session.get(scale("3"), "scale", seconds(60)).has_value());
  const std::string target = log.of(Event::Kind::Loaded).at(0).target;
  Session other = open(options);
  ASSERT_TRUE(other.artifact(scale("3"), Target::opencl(target), seconds(60)).has_value());
  ASSERT_TRUE(other.get(scale("3"), "scale", seconds(60)).has_value());
  EXPECT_EQ(log.count(Event::Kind::Loaded), 2U);
}

TEST_F(SessionTest, MissingEntryIsRejectedWithExistingNames) {
  Session session = open();
  const auto kernel = session.get(scale("3"), "scael", seconds(60));
  ASSERT_FALSE(kernel.has_value());
  EXPECT_EQ(kernel.error().code, Code::InvalidArgument);
  EXPECT_NE(kernel.error().message.find("scale, clear"), std::string::npos) << kernel.error().message;
  EXPECT_EQ(session.get(scale("3"), "", seconds(60)).error().code, Code::InvalidArgument) << "two entries, none named";
}

TEST_F(SessionTest, OpenOpensNoFileAndStartsNoThread) {
  const std::size_t before = threads();
  const auto files = std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  test::TemporaryDirectory nowhere;
  SessionOptions options;
  options.settings["cache.dir"] = nowhere.path("cache");
  Session session = Session::open(options).value();
  (void)session.status();
  EXPECT_EQ(threads(), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}), files);
  EXPECT_FALSE(exists(nowhere.path("cache")));
}

int yields = 0;
const Requirements requirements{"scaling", [] {
                                  ++yields;
                                  return Units{scale("3")};
                                }};

TEST_F(SessionTest, RequirementsAreListedOnlyAtFirstRequest) {
  yields = 0;
  Session session = open();
  EXPECT_EQ(yields, 0);
  for (int i = 0; i < 5; ++i) session.request(requirements);
  EXPECT_EQ(yields, 1);
  Session other = open();
  other.request(requirements);
  EXPECT_EQ(yields, 2);
}

TEST_F(SessionTest, UndeclaredUseIsRecordedWithCaller) {
  test::EventLog log;
  SessionOptions options;
  options.record_undeclared = true;
  options.on_event = log.callback();
  Session session = open(options);
  session.request(requirements);
  ASSERT_TRUE(session.get(scale("3"), "scale", seconds(60)).has_value());
  EXPECT_TRUE(session.undeclared().empty());
  for (int i = 0; i < 2; ++i) {
    // An entry that does not exist is not kept, so that each call is a use.
    EXPECT_FALSE(session.get(scale("5"), "missing", seconds(60)).has_value());
  }
  ASSERT_EQ(session.undeclared().size(), 1U) << "one for each caller";
  EXPECT_EQ(session.undeclared()[0].entry, "missing");
  ASSERT_TRUE(session.get(scale("5"), "clear", seconds(60)).has_value());
  ASSERT_EQ(session.undeclared().size(), 2U);
  EXPECT_EQ(session.undeclared()[1].unit, "scale_5");
  EXPECT_EQ(session.undeclared()[1].entry, "clear");
  EXPECT_NE(session.undeclared()[1].caller.find("session_test.cpp:"), std::string::npos);
  ASSERT_EQ(log.count(Event::Kind::Undeclared), 2U);
  EXPECT_NE(log.of(Event::Kind::Undeclared)[1].message.find("used kernel 'clear'"), std::string::npos);
}

TEST_F(SessionTest, CancelledUnitIsNotCompiledUnlessRequestedAgain) {
  constexpr std::size_t kUnits = 12;
  const test::TemporaryDirectory empty;
  SessionOptions options;
  options.settings["cache.dir"] = empty.path();
  Session session = Session::open(std::move(options)).value();
  Units for_device;
  Units for_target;
  for (std::size_t i = 0; i < kUnits; ++i) {
    const std::string name = "taken_back_" + std::to_string(i);
    for_device.push_back(
        Unit::opencl(name, "kernel void f(global int* x) { *x = " + std::to_string(i) + "; }").with_entry("f"));
    for_target.push_back(
        Unit::cuda(name, "extern \"C\" __global__ void f(int* x) { *x = " + std::to_string(i) + "; }"));
  }
  session.request(for_device);
  session.cancel(for_device);
  session.request(for_target, Target::sm(80));
  session.cancel(for_target, Target::sm(80));
  EXPECT_TRUE(test::eventually([&] { return session.status().pending == 0; }, test::kHangTimeout));
  EXPECT_LT(session.status().compiled, kUnits) << "at most those that had started";
  session.retry({for_target[kUnits - 1]}, Target::sm(80));
  EXPECT_TRUE(session.artifact(for_target[kUnits - 1], Target::sm(80), seconds(60)).has_value());
}

TEST_F(SessionTest, PlanReturnsUnitsNotReadyAtTimeout) {
  test::TemporaryDirectory empty;
  SessionOptions options;
  options.settings["cache.dir"] = empty.path();
  Session session = Session::open(options).value();
  const WarmupPlan plan = WarmupPlan("pipeline").stage(requirements);
  const std::vector<NotReady> cold = plan.ensure_warm(session, milliseconds(1));
  ASSERT_EQ(cold.size(), 1U);
  EXPECT_EQ(cold[0].unit, "scale_3");
  EXPECT_TRUE(plan.ensure_warm(session, seconds(60)).empty());
  EXPECT_TRUE(WarmupPlan("given").stage(Units{scale("3")}).ensure_warm(session).empty());
  EXPECT_EQ(session.status().compiled, 1U) << "the second call joined the compile of the first";
}

TEST_F(SessionTest, FailedCompileIsCachedWithLogUntilRetry) {
  test::EventLog log;
  SessionOptions options;
  options.on_event = log.callback();
  Session session = open(options);
  const Unit broken = Unit::opencl("broken", "kernel void f() { this is no OpenCL }").with_entry("f");
  for (int i = 0; i < 3; ++i) {
    const auto kernel = session.get(broken, "f", seconds(60));
    ASSERT_FALSE(kernel.has_value());
    EXPECT_EQ(kernel.error().code, Code::CompileFailed);
    EXPECT_NE(kernel.error().log.find("error"), std::string::npos);
  }
  EXPECT_EQ(log.count(Event::Kind::CompileFailed), 1U);
  session.retry({broken});
  EXPECT_FALSE(session.get(broken, "f", seconds(60)).has_value());
  EXPECT_EQ(log.count(Event::Kind::CompileFailed), 2U);
}

TEST_F(SessionTest, FailedCompileIsRetriedWhenHeaderChanged) {
  test::EventLog log;
  SessionOptions options;
  options.on_event = log.callback();
  Session session = open(options);
  test::TemporaryDirectory directory;
  test::write_text(directory.path("value.h"), "#define VALUE this is no value\n");
  const Unit unit =
      Unit::cuda("includes", "#include \"value.h\"\nextern \"C\" __global__ void f(int* x) { *x = VALUE; }")
          .with_include_root(directory.path())
          .with_entry("f");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(session.artifact(unit, Target::sm(80), seconds(60)).error().code, Code::CompileFailed);
  }
  EXPECT_EQ(log.count(Event::Kind::CompileFailed), 1U);
  test::write_text(directory.path("value.h"), "#define VALUE 1\n");
  EXPECT_TRUE(session.artifact(unit, Target::sm(80), seconds(60)).has_value());
}

TEST_F(SessionTest, BytesAreAvailableWithoutDevice) {
  Session session = open();
  const Unit unit = Unit::cuda("empty", "extern \"C\" __global__ void f() {}").with_entry("f");
  session.request({unit}, Target::sm(80));
  const auto artifact = session.artifact(unit, Target::sm(80), seconds(60));
  ASSERT_TRUE(artifact.has_value()) << artifact.error().message;
  EXPECT_NE(artifact->symbol("f"), nullptr);
}

TEST_F(SessionTest, BytesNotReadyInTimeAreAvailableLater) {
  test::TemporaryDirectory empty;
  SessionOptions options;
  options.settings["cache.dir"] = empty.path();
  Session session = Session::open(options).value();
  const Unit unit = Unit::cuda("late", "extern \"C\" __global__ void f() {}").with_entry("f");
  const auto early = session.artifact(unit, Target::sm(80), std::chrono::nanoseconds(1));
  ASSERT_FALSE(early.has_value());
  EXPECT_EQ(early.error().code, Code::TimedOut);
  EXPECT_TRUE(session.artifact(unit, Target::sm(80), seconds(60)).has_value());
  EXPECT_EQ(session.status().compiled, 1U);
}

TEST_F(SessionTest, TraceAndMetricsCoverSession) {
  test::TemporaryDirectory directory;
  {
    SessionOptions options;
    options.settings["trace"] = directory.path("trace.json");
    options.collect_metrics = true;
    Session session = open(options);
    ASSERT_TRUE(session.get(scale("3"), "scale", seconds(60)).has_value());
    EXPECT_NE(session.metrics().find("kiln_"), std::string::npos);
  }
  EXPECT_NE(test::read_text(directory.path("trace.json")).find("scale_3"), std::string::npos);
}

TEST(Sessions, TraceThatCannotBeWrittenIsReported) {
  const test::TemporaryDirectory directory;
  test::write_text(directory.path("file"), "");
  test::EventLog log;
  SessionOptions options;
  options.settings = {{"cache.dir", directory.path("cache")}, {"trace", directory.path("file/trace.json")}};
  options.on_event = log.callback();
  (void)Session::open(options).value().status();
  const auto warnings = log.of(Event::Kind::ConfigWarning);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].message.find("no trace is written: "), std::string::npos) << warnings[0].message;
}

// The leak checker detects what is left. Nothing is compiled, because this test is not about compiling.
TEST(Sessions, TenThousandSessionsLeakNothing) {
  test::TemporaryDirectory directory;
  SessionOptions options;
  options.settings = {{"cache.dir", directory.path()}};
  const Unit unit = Unit::cuda("unit", "extern \"C\" __global__ void f() {}").with_entry("f");
  // The compiler is digested once here, not by each session.
  (void)Session::open(options).value().artifact(unit, Target::sm(80), seconds(60));
  options.settings["compile"] = "never";
  for (int round = 0; round < 10000; ++round) {
    Session session = Session::open(options).value();
    session.request({unit}, Target::sm(80));
    const KernelHandle handle = session.handle(unit, "f");
    if (round % 3 == 0) std::this_thread::yield();
    if (round % 100 == 0) (void)session.artifact(unit, Target::sm(80), seconds(60));
  }
  EXPECT_LE(threads(), 64U);
}

TEST_F(SessionTest, ManyThreadsLoadOneKernelOnce) {
  test::EventLog log;
  SessionOptions options;
  options.on_event = log.callback();
  Session session = open(options);
  const KernelHandle handle = session.handle(scale("7"), "scale");
  std::vector<std::thread> all;
  std::atomic<int> good{0};
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&] { good += handle.get(seconds(60)).has_value() ? 1 : 0; });
  }
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(good, 8);
  EXPECT_EQ(log.count(Event::Kind::Loaded), 1U);
  EXPECT_LE(log.count(Event::Kind::Compiled), 1U);
}

}  // namespace
}  // namespace kiln
