// A whole session whose servers are out of reach, against one that was never told of any.
#include <gtest/gtest.h>

#include <kiln/session.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.hpp"
#include "support/event_log.hpp"
#include "support/own_network.hpp"
#include "support/own_process.hpp"
#include "support/temporary_directory.hpp"
#include "trust/keys.hpp"

namespace kiln::test {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

// Where nobody listens, and nothing says so.
constexpr std::uint16_t kStorePort = 8080;
constexpr std::uint16_t kLeasePort = 6379;

Unit unit_number(int number) {
  return Unit::cuda("unit_" + std::to_string(number),
                    "extern \"C\" __global__ void f(int* x) { *x = " + std::to_string(number) + "; }")
      .entry("f");
}

/// What a program sees of kiln: bytes, and events by kind, unit and tier.
struct Seen {
  std::vector<std::string> bytes = {};
  std::map<std::tuple<std::string, std::string, std::string>, int> events = {};
  std::map<Event::Kind, int> of_the_fleet = {};  // those that a host without servers has not
  std::vector<double> ms = {};
};

bool is_of_the_fleet(Event::Kind kind) {
  return kind == Event::Kind::RemoteUnavailable || kind == Event::Kind::UploadDropped ||
         kind == Event::Kind::ClaimUnavailable;
}

// Compiles some units, then has them from the cache in a second session.
Seen use(const std::string& cache, std::map<std::string, std::string> settings) {
  Seen seen;
  Mutex mutex;
  settings["cache.dir"] = cache;
  settings["pch"] = "off";
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

TEST(RemoteGone, AHostWhoseServersAreOutOfReachBehavesAsIfItHadNone) {
  auto network = OwnNetwork::enter();
  if (!network) GTEST_SKIP() << network.error().message;
  ASSERT_TRUE(network->drop(kStorePort) && network->drop(kLeasePort));
  const TemporaryDirectory folder;
  ASSERT_TRUE(SecretKey::generate().write(folder.path("key")).ok());
  const Seen without = use(folder.path("without"), {});
  const Seen with = use(folder.path("with"), {{"remote", "http://127.0.0.1:" + std::to_string(kStorePort)},
                                              {"remote.sign", folder.path("key")},
                                              {"remote.namespace", "acme"},
                                              {"lease", "redis://127.0.0.1:" + std::to_string(kLeasePort)}});
  EXPECT_EQ(with.bytes, without.bytes);
  EXPECT_EQ(with.events, without.events);
  EXPECT_TRUE(without.of_the_fleet.empty());
  // Told and paid for once, by the first question: without the store nobody asks for leases, and the second session
  // asked nobody, because the cache had everything.
  const std::map<Event::Kind, int> told = {
      {Event::Kind::RemoteUnavailable, 1}, {Event::Kind::UploadDropped, 3}, {Event::Kind::ClaimUnavailable, 3}};
  EXPECT_EQ(with.of_the_fleet, told);
  std::printf(
      "figure: remote_gone compile_ms with %.1f %.1f %.1f without %.1f %.1f %.1f hit_ms with %.2f without %.2f\n",
      with.ms[0], with.ms[1], with.ms[2], without.ms[0], without.ms[1], without.ms[2], with.ms[5], without.ms[5]);
}

TEST(RemoteGone, ASessionThatNeedsNoServerOpensNoConnection) {
  const TemporaryDirectory folder;
  (void)use(folder.path("cache"), {});  // fills the cache
  const std::size_t sockets = sockets_of_this_process();
  SessionOptions options;
  options.settings = {
      {"cache.dir", folder.path("cache")}, {"remote", "http://127.0.0.1:1"}, {"lease", "redis://127.0.0.1:1"}};
  options.locked = {"cache.dir", "remote", "lease"};
  EventLog log;
  options.on_event = log.callback();
  Session session = Session::open(std::move(options)).value();
  ASSERT_TRUE(session.artifact(unit_number(1), Target::sm(80), seconds(60)).ok());
  EXPECT_EQ(log.count(Event::Kind::RemoteUnavailable), 0u);
  EXPECT_EQ(sockets_of_this_process(), sockets);
}

}  // namespace
}  // namespace kiln::test
