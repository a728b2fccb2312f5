// SPDX-License-Identifier: Apache-2.0
// A session with unreachable servers, compared with a session without servers.
#include <gtest/gtest.h>

#include <kiln/session.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/private_network.hpp"
#include "support/processes/process_info.hpp"
#include "trust/keys.hpp"

namespace kiln::test {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// Ports without a listener; packets to them are dropped.
constexpr std::uint16_t kStorePort = 8080;
constexpr std::uint16_t kLeasePort = 6379;

Unit unit_number(int number) {
  return Unit::cuda("unit_" + std::to_string(number),
                    "extern \"C\" __global__ void f(int* x) { *x = " + std::to_string(number) + "; }")
      .with_entry("f");
}

/// The results that a program sees: bytes, and events by kind, unit and tier.
struct Seen {
  std::vector<std::string> bytes = {};
  std::map<std::tuple<std::string, std::string, std::string>, int> events = {};
  std::map<Event::Kind, int> of_the_fleet = {};  // events that a host without servers does not emit
  std::vector<double> ms = {};
};

bool is_of_the_fleet(Event::Kind kind) {
  return kind == Event::Kind::RemoteUnavailable || kind == Event::Kind::UploadDropped ||
         kind == Event::Kind::ClaimUnavailable;
}

// Compiles some units, then gets them from the cache in a second session.
Seen use(const std::string& cache, std::map<std::string, std::string> settings) {
  Seen seen;
  Mutex mutex;
  settings["cache.dir"] = cache;
  settings["pch.mode"] = "off";
  for (int start = 0; start < 2; ++start) {
    SessionOptions options;
    options.settings = settings;
    for (const auto& [name, value] : settings) options.locked.insert(name);
    options.on_event = [&](const Event& event) {
      const MutexLock lock(mutex);
      if (is_of_the_fleet(event.kind)) {
        ++seen.of_the_fleet[event.kind];
      } else {
        ++seen.events[{to_string(event.kind), event.unit, event.origin}];
      }
    };
    Session session = Session::open(std::move(options)).value();
    for (int number = 0; number < 3; ++number) {
      const nanoseconds begin = system_clock().steady();
      const auto artifact = session.artifact(unit_number(number), Target::sm(80), seconds(60));
      seen.ms.push_back(milliseconds_since(system_clock(), begin));
      seen.bytes.push_back(artifact ? std::string(artifact->bytes.view()) : artifact.error().message);
    }
  }
  return seen;
}

TEST(RemoteGone, UnreachableServersDoNotChangeResults) {
  auto network = PrivateNetwork::enter();
  if (!network) GTEST_SKIP() << network.error().message;
  ASSERT_TRUE(network->drop(kStorePort) && network->drop(kLeasePort));
  const TemporaryDirectory directory;
  ASSERT_TRUE(SecretKey::generate().write(directory.path("key")).has_value());
  const Seen without = use(directory.path("without"), {});
  const Seen with = use(directory.path("with"), {{"remote.url", "http://127.0.0.1:" + std::to_string(kStorePort)},
                                                 {"remote.signing_key", directory.path("key")},
                                                 {"remote.namespace", "acme"},
                                                 {"lease.url", "redis://127.0.0.1:" + std::to_string(kLeasePort)}});
  EXPECT_EQ(with.bytes, without.bytes);
  EXPECT_EQ(with.events, without.events);
  EXPECT_TRUE(without.of_the_fleet.empty());
  // One event and one timeout, for the first request. Without the store no lease is requested, and the second session
  // sends no request because everything is in the cache.
  const std::map<Event::Kind, int> reported = {
      {Event::Kind::RemoteUnavailable, 1}, {Event::Kind::UploadDropped, 3}, {Event::Kind::ClaimUnavailable, 3}};
  EXPECT_EQ(with.of_the_fleet, reported);
  std::printf(
      "figure: remote_gone compile_ms with %.1f %.1f %.1f without %.1f %.1f %.1f hit_ms with %.2f without %.2f\n",
      with.ms[0], with.ms[1], with.ms[2], without.ms[0], without.ms[1], without.ms[2], with.ms[5], without.ms[5]);
}

TEST(RemoteGone, SessionThatNeedsNoServerOpensNoConnection) {
  const TemporaryDirectory directory;
  (void)use(directory.path("cache"), {});  // fills the cache
  const std::size_t sockets = sockets_of_this_process();
  SessionOptions options;
  options.settings = {{"cache.dir", directory.path("cache")},
                      {"remote.url", "http://127.0.0.1:1"},
                      {"lease.url", "redis://127.0.0.1:1"}};
  options.locked = {"cache.dir", "remote.url", "lease.url"};
  EventLog log;
  options.on_event = log.callback();
  Session session = Session::open(std::move(options)).value();
  ASSERT_TRUE(session.artifact(unit_number(1), Target::sm(80), seconds(60)).has_value());
  EXPECT_EQ(log.count(Event::Kind::RemoteUnavailable), 0u);
  EXPECT_EQ(sockets_of_this_process(), sockets);
}

}  // namespace
}  // namespace kiln::test
