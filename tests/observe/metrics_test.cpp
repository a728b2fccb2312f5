#include "observe/metrics.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/files.hpp"
#include "support/temporary_directory.hpp"

namespace kiln {
namespace {

Event counted(Event::Kind kind, std::string origin = "", double ms = 0) {
  Event told;
  told.kind = kind;
  told.origin = std::move(origin);
  told.ms = ms;
  return told;
}

// The value of a sample, as it stands in the text; "absent" where there is none.
std::string value(const std::string& text, const std::string& sample) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(sample + ' ', 0) == 0) return line.substr(sample.size() + 1);
  }
  return "absent";
}

SessionStatus some_status() {
  SessionStatus status;
  status.submitted = 15;
  status.compiled = 1;
  status.found = 2;
  status.pending = 3;
  status.failed = 4;
  status.cancelled = 5;
  status.wall_ms = 1500;
  return status;
}

Event said(Event::Kind kind, std::string selected, double ms = 0) {
  Event told = counted(kind, "remote", ms);
  told.selected = std::move(selected);
  return told;
}

// Some of everything.
void fill(Metrics& metrics) {
  for (std::size_t kind = 0; kind < Metrics::kKinds; ++kind) metrics.tell(counted(static_cast<Event::Kind>(kind)));
  for (const char* origin : {"memory", "bundle", "disk", "remote", "compiled", "a path \"with\" \\ and\nmore"}) {
    metrics.tell(counted(Event::Kind::Hit, origin, 0.25));
  }
  metrics.tell(counted(Event::Kind::Compiled, "compiled", 700));
  metrics.tell(counted(Event::Kind::Compiled, "compiled", 45'000));
  metrics.tell(said(Event::Kind::LeaseWaited, "hedged", 700));
  metrics.tell(said(Event::Kind::RemoteRefused, "old_epoch"));
  metrics.tell(counted(Event::Kind::RemoteUnavailable, "remote"));
}

TEST(Metrics, CountEventsByKindAndOrigin) {
  Metrics metrics;
  metrics.tell(counted(Event::Kind::Hit, "disk"));
  metrics.tell(counted(Event::Kind::Hit, "disk"));
  metrics.tell(counted(Event::Kind::Hit, "memory"));
  metrics.tell(counted(Event::Kind::Miss));
  metrics.tell(counted(Event::Kind::CacheUnavailable, "/some/path"));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="hit",origin="disk"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="hit",origin="memory"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="hit",origin="remote"})"), "absent");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="miss"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="evicted"})"), "0") << "a rate needs a first value";
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="cache_unavailable",origin="other"})"), "1");
  EXPECT_EQ(text.find("/some/path"), std::string::npos) << "each path would be a time series for ever";
}

TEST(Metrics, AddUpTimeAndBytes) {
  Metrics metrics;
  metrics.tell(counted(Event::Kind::Loaded, "", 1.5));
  metrics.tell(counted(Event::Kind::Loaded, "", 2.5));
  Event copied = counted(Event::Kind::Copied);
  copied.bytes = 4096;
  metrics.tell(copied);
  metrics.tell(copied);
  Event allocated = counted(Event::Kind::Allocated);
  allocated.bytes = 1;
  metrics.tell(allocated);
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_event_seconds_total{kind="loaded"})"), "0.004");
  EXPECT_EQ(value(text, "kiln_copied_bytes_total"), "8192");
}

TEST(Metrics, SayHowLongCompilesAndWaitsTook) {
  Metrics metrics;
  metrics.tell(counted(Event::Kind::Compiled, "compiled", 0.5));
  metrics.tell(counted(Event::Kind::Compiled, "compiled", 25));  // on a bound, and so within it
  metrics.tell(counted(Event::Kind::Compiled, "compiled", 45'000));
  metrics.tell(counted(Event::Kind::Waited, "", 90));
  metrics.tell(counted(Event::Kind::HotCompile, "", 300));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="0.001"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="0.01"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="0.025"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="30"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="+Inf"})"), "3");
  EXPECT_EQ(value(text, "kiln_compile_seconds_count"), "3");
  EXPECT_EQ(value(text, "kiln_compile_seconds_sum"), "45.0255");
  EXPECT_EQ(value(text, "kiln_wait_seconds_sum"), "0.09");
  EXPECT_EQ(value(text, "kiln_hot_compile_seconds_sum"), "0.3");
}

TEST(Metrics, TakeDurationsThatAreNone) {
  Metrics metrics;
  metrics.tell(counted(Event::Kind::Compiled, "", std::numeric_limits<double>::quiet_NaN()));
  metrics.tell(counted(Event::Kind::Compiled, "", std::numeric_limits<double>::infinity()));
  metrics.tell(counted(Event::Kind::Compiled, "", -5));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, "kiln_compile_seconds_count"), "3");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="0.001"})"), "2");
  EXPECT_EQ(value(text, "kiln_compile_seconds_sum"), "30000000");
}

TEST(Metrics, SayHowWaitsForOtherHostsEnded) {
  Metrics metrics;
  metrics.tell(said(Event::Kind::LeaseWaited, "finished", 300));
  metrics.tell(said(Event::Kind::LeaseWaited, "hedged", 2'000));
  metrics.tell(said(Event::Kind::LeaseWaited, "a word from elsewhere", 1));
  metrics.tell(counted(Event::Kind::Hedged, "remote"));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_bucket{ended="finished",le="0.25"})"), "0");
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_bucket{ended="finished",le="0.5"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_sum{ended="hedged"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_count{ended="timed_out"})"), "0");
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_count{ended="other"})"), "1");
  EXPECT_EQ(value(text, "kiln_hedges_total"), "1");
  EXPECT_EQ(value(text, R"(kiln_remote_up{server="lease"})"), "1") << "it answered";
}

TEST(Metrics, CountWhatIsNotBelievedByWhyAndByNoOtherWords) {
  Metrics metrics;
  metrics.tell(said(Event::Kind::RemoteRefused, "old_epoch"));
  metrics.tell(said(Event::Kind::RemoteRefused, "old_epoch"));
  metrics.tell(said(Event::Kind::RemoteRefused, "\"}\n"));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_remote_refused_total{why="old_epoch"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_remote_refused_total{why="revoked_key"})"), "0");
  EXPECT_EQ(value(text, R"(kiln_remote_refused_total{why="other"})"), "1");
}

TEST(Metrics, AServerIsUpOrDownOnceSomethingWasHeardOfIt) {
  const std::string remote = R"(kiln_remote_up{server="remote"})";
  const std::string lease = R"(kiln_remote_up{server="lease"})";
  Metrics metrics;
  metrics.tell(counted(Event::Kind::Hit, "disk"));
  EXPECT_EQ(value(metrics.text({}), remote), "absent") << "it may not even be configured";
  metrics.tell(counted(Event::Kind::Hit, "remote"));
  EXPECT_EQ(value(metrics.text({}), remote), "1");
  metrics.tell(counted(Event::Kind::RemoteUnavailable, "remote"));
  metrics.tell(counted(Event::Kind::Hit, "remote"));
  EXPECT_EQ(value(metrics.text({}), remote), "0") << "a late answer does not bring it back";
  EXPECT_EQ(value(metrics.text({}), lease), "absent");
  metrics.tell(counted(Event::Kind::RemoteUnavailable, "lease"));
  metrics.tell(counted(Event::Kind::RemoteBack, "remote"));
  EXPECT_EQ(value(metrics.text({}), remote), "1");
  EXPECT_EQ(value(metrics.text({}), lease), "0");
}

TEST(Metrics, CountUploadsAndDrops) {
  Metrics metrics;
  Event uploaded = counted(Event::Kind::Uploaded, "remote");
  uploaded.bytes = 4096;
  metrics.tell(uploaded);
  metrics.tell(uploaded);
  metrics.tell(counted(Event::Kind::UploadDropped, "remote"));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, "kiln_uploads_total"), "2");
  EXPECT_EQ(value(text, "kiln_uploaded_bytes_total"), "8192");
  EXPECT_EQ(value(text, "kiln_uploads_dropped_total"), "1");
}

TEST(Metrics, HandOnTheStatusOfASession) {
  const std::string text = Metrics().text(some_status());
  EXPECT_EQ(value(text, R"(kiln_units{state="compiled"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_units{state="found"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_units{state="pending"})"), "3");
  EXPECT_EQ(value(text, R"(kiln_units{state="failed"})"), "4");
  EXPECT_EQ(value(text, R"(kiln_units{state="cancelled"})"), "5");
  EXPECT_EQ(value(text, "kiln_units_submitted"), "15");
  EXPECT_EQ(value(text, "kiln_wall_seconds"), "1.5");
}

TEST(Metrics, LoseNoEventOfManyThreads) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5000; ++n) metrics.tell(counted(Event::Kind::Compiled, "compiled", 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="compiled",origin="compiled"})"), "20000");
  EXPECT_EQ(value(text, "kiln_compile_seconds_count"), "20000");
  EXPECT_EQ(value(text, "kiln_compile_seconds_sum"), "20");
}

TEST(Metrics, AreTextThatPromtoolAccepts) {
  if (std::system("promtool --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed (tools/setup.sh installs the package prometheus, which has it)";
  }
  Metrics metrics;
  fill(metrics);
  const test::TemporaryDirectory folder;
  for (const std::string& text : {metrics.text(some_status()), Metrics().text({})}) {
    test::spit(folder.path("metrics"), text);
    const std::string command =
        "promtool check metrics <" + folder.path("metrics") + " >" + folder.path("said") + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << test::slurp(folder.path("said")) << text;
    EXPECT_EQ(test::slurp(folder.path("said")), "");
  }
}

TEST(MetricsDocs, NameEveryMetric) {
  Metrics metrics;
  fill(metrics);
  const std::string docs = test::slurp(KILN_SOURCE_DIR "/docs/metrics.md");
  std::istringstream lines(metrics.text(some_status()));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# TYPE ", 0) != 0) continue;
    const std::string name = line.substr(7, line.find(' ', 7) - 7);
    EXPECT_NE(docs.find("| `" + name), std::string::npos) << "docs/metrics.md has no row for " << name;
  }
}

}  // namespace
}  // namespace kiln
