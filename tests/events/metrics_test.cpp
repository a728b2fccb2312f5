// SPDX-License-Identifier: Apache-2.0
#include "events/metrics.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/fixtures/files.hpp"
#include "support/fixtures/temporary_directory.hpp"

namespace kiln {
namespace {

Event counted(Event::Kind kind, std::string origin = "", double ms = 0) {
  Event reported;
  reported.kind = kind;
  reported.origin = std::move(origin);
  reported.ms = ms;
  return reported;
}

// Returns the value of a sample as printed; "absent" if there is none.
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
  status.cached = 2;
  status.pending = 3;
  status.failed = 4;
  status.cancelled = 5;
  status.wall_ms = 1500;
  return status;
}

Event said(Event::Kind kind, std::string selected, double ms = 0) {
  Event reported = counted(kind, "remote", ms);
  reported.selected = std::move(selected);
  return reported;
}

// Adds some events of each kind.
void fill(Metrics& metrics) {
  for (std::size_t kind = 0; kind < Metrics::kKinds; ++kind) metrics.on_event(counted(static_cast<Event::Kind>(kind)));
  metrics.on_event(Event::of({"runtime", "decided"}));
  for (const char* origin : {"memory", "bundle", "disk", "remote", "compiled", "a path \"with\" \\ and\nmore"}) {
    metrics.on_event(counted(Event::Kind::Hit, origin, 0.25));
  }
  metrics.on_event(counted(Event::Kind::Compiled, "compiled", 700));
  metrics.on_event(counted(Event::Kind::Compiled, "compiled", 45'000));
  metrics.on_event(said(Event::Kind::LeaseWaited, "hedged", 700));
  metrics.on_event(said(Event::Kind::RemoteRejected, "epoch_too_old"));
  metrics.on_event(counted(Event::Kind::RemoteUnavailable, "remote"));
}

TEST(Metrics, CountEventsByKindAndOrigin) {
  Metrics metrics;
  metrics.on_event(counted(Event::Kind::Hit, "disk"));
  metrics.on_event(counted(Event::Kind::Hit, "disk"));
  metrics.on_event(counted(Event::Kind::Hit, "memory"));
  metrics.on_event(counted(Event::Kind::Miss));
  metrics.on_event(counted(Event::Kind::CacheUnavailable, "/some/path"));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="hit",origin="disk"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="hit",origin="memory"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="hit",origin="remote"})"), "absent");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="miss"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="evicted"})"), "0") << "a rate needs a first value";
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="cache_unavailable",origin="other"})"), "1");
  EXPECT_EQ(text.find("/some/path"), std::string::npos) << "each path would create a time series";
}

TEST(Metrics, CountExtensionsByCategoryAndName) {
  Metrics metrics;
  Event drawn = Event::of({"painter", "picture_drawn"});
  drawn.ms = 2;
  metrics.on_event(drawn);
  metrics.on_event(drawn);
  drawn.origin = "disk";
  metrics.on_event(drawn);
  metrics.on_event(Event::of({"painter", "hit"}));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="picture_drawn",category="painter"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="picture_drawn",category="painter",origin="disk"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_event_seconds_total{kind="picture_drawn",category="painter"})"), "0.006");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="hit",category="painter"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="hit"})"), "0") << "a kind of kiln has no category";
}

TEST(Metrics, OtherExtensionsShareOneTimeSeries) {
  Metrics metrics;
  for (const char* name : {"", "a path \"with\" \\ and\nmore", "Upper"}) metrics.on_event(Event::of({"painter", name}));
  for (std::size_t i = 0; i < Metrics::kMaxExtensions + 10; ++i) {
    metrics.on_event(Event::of({"painter", "picture_" + std::to_string(i)}));
  }
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="picture_0",category="painter"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="other",category="other"})"), "14");
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="picture_70",category="painter"})"), "absent");
}

TEST(Metrics, SumTimeAndBytes) {
  Metrics metrics;
  metrics.on_event(counted(Event::Kind::Loaded, "", 1.5));
  metrics.on_event(counted(Event::Kind::Loaded, "", 2.5));
  Event copied = counted(Event::Kind::Copied);
  copied.bytes = 4096;
  metrics.on_event(copied);
  metrics.on_event(copied);
  Event allocated = counted(Event::Kind::Allocated);
  allocated.bytes = 1;
  metrics.on_event(allocated);
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_event_seconds_total{kind="loaded"})"), "0.004");
  EXPECT_EQ(value(text, "kiln_copied_bytes_total"), "8192");
}

TEST(Metrics, RecordCompileAndWaitDurations) {
  Metrics metrics;
  metrics.on_event(counted(Event::Kind::Compiled, "compiled", 0.5));
  metrics.on_event(counted(Event::Kind::Compiled, "compiled", 25));  // equal to a bound, and so within it
  metrics.on_event(counted(Event::Kind::Compiled, "compiled", 45'000));
  metrics.on_event(counted(Event::Kind::ClaimWaited, "", 90));
  metrics.on_event(counted(Event::Kind::BlockingCompile, "", 300));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="0.001"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="0.01"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="0.025"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="30"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="+Inf"})"), "3");
  EXPECT_EQ(value(text, "kiln_compile_seconds_count"), "3");
  EXPECT_EQ(value(text, "kiln_compile_seconds_sum"), "45.0255");
  EXPECT_EQ(value(text, "kiln_claim_wait_seconds_sum"), "0.09");
  EXPECT_EQ(value(text, "kiln_blocking_compile_seconds_sum"), "0.3");
}

TEST(Metrics, AcceptInvalidDurations) {
  Metrics metrics;
  metrics.on_event(counted(Event::Kind::Compiled, "", std::numeric_limits<double>::quiet_NaN()));
  metrics.on_event(counted(Event::Kind::Compiled, "", std::numeric_limits<double>::infinity()));
  metrics.on_event(counted(Event::Kind::Compiled, "", -5));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, "kiln_compile_seconds_count"), "3");
  EXPECT_EQ(value(text, R"(kiln_compile_seconds_bucket{le="0.001"})"), "2");
  EXPECT_EQ(value(text, "kiln_compile_seconds_sum"), "30000000");
}

TEST(Metrics, RecordLeaseWaitOutcomes) {
  Metrics metrics;
  metrics.on_event(said(Event::Kind::LeaseWaited, "finished", 300));
  metrics.on_event(said(Event::Kind::LeaseWaited, "hedged", 2'000));
  metrics.on_event(said(Event::Kind::LeaseWaited, "an unknown outcome", 1));
  metrics.on_event(counted(Event::Kind::Hedged, "remote"));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_bucket{outcome="finished",le="0.25"})"), "0");
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_bucket{outcome="finished",le="0.5"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_sum{outcome="hedged"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_count{outcome="timed_out"})"), "0");
  EXPECT_EQ(value(text, R"(kiln_lease_wait_seconds_count{outcome="other"})"), "1");
  EXPECT_EQ(value(text, "kiln_hedges_total"), "1");
  EXPECT_EQ(value(text, R"(kiln_remote_up{server="lease"})"), "1") << "it responded";
}

TEST(Metrics, CountRejectionsByKnownReasons) {
  Metrics metrics;
  metrics.on_event(said(Event::Kind::RemoteRejected, "epoch_too_old"));
  metrics.on_event(said(Event::Kind::RemoteRejected, "epoch_too_old"));
  metrics.on_event(said(Event::Kind::RemoteRejected, "\"}\n"));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_remote_rejected_total{reason="epoch_too_old"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_remote_rejected_total{reason="revoked_key"})"), "0");
  EXPECT_EQ(value(text, R"(kiln_remote_rejected_total{reason="other"})"), "1");
}

TEST(Metrics, ServerStateIsUnknownBeforeFirstEvent) {
  const std::string remote = R"(kiln_remote_up{server="remote"})";
  const std::string lease = R"(kiln_remote_up{server="lease"})";
  Metrics metrics;
  metrics.on_event(counted(Event::Kind::Hit, "disk"));
  EXPECT_EQ(value(metrics.text({}), remote), "absent") << "the server may not be configured";
  metrics.on_event(counted(Event::Kind::Hit, "remote"));
  EXPECT_EQ(value(metrics.text({}), remote), "1");
  metrics.on_event(counted(Event::Kind::RemoteUnavailable, "remote"));
  metrics.on_event(counted(Event::Kind::Hit, "remote"));
  EXPECT_EQ(value(metrics.text({}), remote), "0") << "a late response does not close the circuit";
  EXPECT_EQ(value(metrics.text({}), lease), "absent");
  metrics.on_event(counted(Event::Kind::RemoteUnavailable, "lease"));
  metrics.on_event(counted(Event::Kind::RemoteRecovered, "remote"));
  EXPECT_EQ(value(metrics.text({}), remote), "1");
  EXPECT_EQ(value(metrics.text({}), lease), "0");
}

TEST(Metrics, CountUploadsAndDrops) {
  Metrics metrics;
  Event uploaded = counted(Event::Kind::Uploaded, "remote");
  uploaded.bytes = 4096;
  metrics.on_event(uploaded);
  metrics.on_event(uploaded);
  metrics.on_event(counted(Event::Kind::UploadDropped, "remote"));
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, "kiln_uploads_total"), "2");
  EXPECT_EQ(value(text, "kiln_uploaded_bytes_total"), "8192");
  EXPECT_EQ(value(text, "kiln_uploads_dropped_total"), "1");
}

TEST(Metrics, IncludeSessionStatus) {
  const std::string text = Metrics().text(some_status());
  EXPECT_EQ(value(text, R"(kiln_units{state="compiled"})"), "1");
  EXPECT_EQ(value(text, R"(kiln_units{state="cached"})"), "2");
  EXPECT_EQ(value(text, R"(kiln_units{state="pending"})"), "3");
  EXPECT_EQ(value(text, R"(kiln_units{state="failed"})"), "4");
  EXPECT_EQ(value(text, R"(kiln_units{state="cancelled"})"), "5");
  EXPECT_EQ(value(text, "kiln_units_submitted"), "15");
  EXPECT_EQ(value(text, "kiln_session_wall_seconds"), "1.5");
}

TEST(Metrics, CountConcurrentEvents) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 5000; ++n) metrics.on_event(counted(Event::Kind::Compiled, "compiled", 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = metrics.text({});
  EXPECT_EQ(value(text, R"(kiln_events_total{kind="compiled",origin="compiled"})"), "20000");
  EXPECT_EQ(value(text, "kiln_compile_seconds_count"), "20000");
  EXPECT_EQ(value(text, "kiln_compile_seconds_sum"), "20");
}

TEST(Metrics, TextPassesPromtool) {
  if (std::system("promtool --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed (tools/setup.sh installs the package prometheus, which has it)";
  }
  Metrics metrics;
  fill(metrics);
  const test::TemporaryDirectory directory;
  for (const std::string& text : {metrics.text(some_status()), Metrics().text({})}) {
    test::write_text(directory.path("metrics"), text);
    const std::string command =
        "promtool check metrics <" + directory.path("metrics") + " >" + directory.path("said") + " 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << test::read_text(directory.path("said")) << text;
    EXPECT_EQ(test::read_text(directory.path("said")), "");
  }
}

TEST(MetricsDocs, ListEveryMetric) {
  Metrics metrics;
  fill(metrics);
  const std::string docs = test::read_text(KILN_SOURCE_DIR "/docs/_generated/metrics.md");
  std::istringstream lines(metrics.text(some_status()));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("# TYPE ", 0) != 0) continue;
    const std::string name = line.substr(7, line.find(' ', 7) - 7);
    EXPECT_NE(docs.find("| `" + name), std::string::npos) << "no row (run tools/make_reference) for " << name;
  }
}

}  // namespace
}  // namespace kiln
