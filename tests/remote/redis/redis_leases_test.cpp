// SPDX-License-Identifier: Apache-2.0
#include "remote/redis/redis_leases.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "support/fixtures/event_log.hpp"
#include "support/fixtures/files.hpp"
#include "support/fixtures/fleet_claims_fixture.hpp"
#include "support/fixtures/temporary_directory.hpp"
#include "support/processes/eventually.hpp"
#include "support/processes/forked.hpp"
#include "support/processes/scheduling_delay.hpp"
#include "support/servers/misbehaving_server.hpp"
#include "support/servers/redis.hpp"

namespace kiln::test {
namespace {

using namespace std::chrono_literals;

// The ACL of docs/how-to/share-a-cache.md.
constexpr const char* kUser =
    "kiln on >secret resetkeys ~kiln:1:* resetchannels -@all +set +get +pttl +pexpire +del +incr +eval +ping +select";

constexpr std::chrono::seconds kLimit{60};  // of one request, which takes a millisecond unless the machine is busy

RequestKey wanted(int number) { return {sha256("wanted " + std::to_string(number))}; }

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Error error_of_open(const std::string& url) {
  auto opened = open_redis_leases({url, ""});
  return opened ? Error{} : std::move(opened).error();
}

TEST(RedisLeases, KeysAndValuesMatchDocumentation) {
  const RedisServer server;
  const auto table = open_redis_leases({server.url(), ""}).value();
  ASSERT_TRUE(table->try_acquire(wanted(1), "node7:42:abc", 60s, kLimit).value());
  ASSERT_TRUE(table->try_hedge(wanted(1), 1, 90s, kLimit).value());
  EXPECT_EQ(server.ask({"get", "kiln:1:lease:" + wanted(1).hex()}), "node7:42:abc");
  EXPECT_EQ(server.ask({"get", "kiln:1:hedge:" + wanted(1).hex()}), "1");
  EXPECT_LE(std::stol(server.ask({"pttl", "kiln:1:lease:" + wanted(1).hex()})), 60'000);
  EXPECT_LE(std::stol(server.ask({"pttl", "kiln:1:hedge:" + wanted(1).hex()})), 90'000);
  EXPECT_EQ(server.ask({"dbsize"}), "2");
}

TEST(RedisLeases, CallerDoesNotWaitForQueryOfBackgroundRequest) {
  const MisbehavingServer server(Mode::Silent);
  FleetPolicy policy;
  policy.query_timeout = policy.background_budget = 60s;
  FleetClaims claims(
      fleet_parts(open_redis_leases({"redis://127.0.0.1:" + std::to_string(server.port()), ""}).value(), policy));
  Urgency urgent(false);
  std::jthread caller([urgent]() mutable {
    std::this_thread::sleep_for(50ms);
    urgent.raise();
  });
  ServerTimeBudget budget(policy.background_budget, urgent, policy.budget);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(claims.acquire(wanted(1), 60s, {.server_budget = &budget}).outcome, Claims::Outcome::Unavailable);
  EXPECT_LT(ms_since(start), 20'000);  // a busy machine; less than the timeout of the query
}

TEST(RedisLeases, WorkWithMinimalAclAndOtherDatabase) {
  const TemporaryDirectory directory;
  write_secret(directory.path("password"), "secret\n");
  const RedisServer server({"", kUser});
  const auto table = open_redis_leases({server.url("kiln") + "/3", directory.path("password")}).value();
  ASSERT_TRUE(table->probe(kLimit).has_value());
  ASSERT_TRUE(table->try_acquire(wanted(1), "a", 60s, kLimit).value());
  EXPECT_TRUE(table->renew(wanted(1), "a", 60s, kLimit).value());
  EXPECT_GT(table->remaining_ttl(wanted(1), kLimit).value(), 0s);
  EXPECT_TRUE(table->try_hedge(wanted(1), 1, 60s, kLimit).value());
  EXPECT_TRUE(table->release(wanted(1), "a", kLimit).has_value());
  EXPECT_EQ(table->remaining_ttl(wanted(1), kLimit).value(), 0s);
  EXPECT_EQ(table->describe(), server.url() + "/3");
}

TEST(RedisLeases, WrongPasswordIsRejectedAndNewOneNeedsNoRestart) {
  const TemporaryDirectory directory;
  const std::string file = directory.path("password");
  const RedisServer server({"open-sesame"});
  const auto without = open_redis_leases({server.url(), ""}).value();
  EXPECT_EQ(without->remaining_ttl(wanted(1), kLimit).error().code, Code::Denied);
  write_secret(file, "hunter2\n");
  const auto table = open_redis_leases({server.url(), file}).value();
  const Error wrong = table->remaining_ttl(wanted(1), kLimit).error();
  EXPECT_EQ(wrong.code, Code::Denied);
  EXPECT_EQ(wrong.message.find("hunter2"), std::string::npos) << wrong.message;
  write_secret(file, "open-sesame\n");
  EXPECT_TRUE(table->remaining_ttl(wanted(1), kLimit).has_value());
  std::filesystem::remove(file);
  EXPECT_TRUE(table->remaining_ttl(wanted(1), kLimit).has_value()) << "the file is read for a new connection only";
  const auto fileless = open_redis_leases({server.url(), file}).value();
  EXPECT_EQ(fileless->remaining_ttl(wanted(1), kLimit).error().code, Code::Unavailable);
}

TEST(RedisLeases, MissingPermissionIsRejected) {
  const TemporaryDirectory directory;
  write_secret(directory.path("password"), "secret");
  const RedisServer server({"", "kiln on >secret ~other:* -@all +set"});
  const auto table = open_redis_leases({server.url("kiln"), directory.path("password")}).value();
  EXPECT_EQ(table->try_acquire(wanted(1), "a", 60s, kLimit).error().code, Code::Denied);
  EXPECT_EQ(table->probe(kLimit).error().code, Code::Denied);
}

TEST(RedisLeases, PasswordEchoedByServerIsNotInMessage) {
  const TemporaryDirectory directory;
  write_secret(directory.path("password"), "xyzzy-plugh");
  const RedisServer server({"", "", "127.0.0.1", {"rename-command AUTH \"\""}});
  EXPECT_NE(server.ask({"auth", "xyzzy-plugh"}).find("xyzzy-plugh"), std::string::npos)
      << "Redis no longer repeats the arguments";
  const auto table = open_redis_leases({server.url(), directory.path("password")}).value();
  const Error error = table->remaining_ttl(wanted(1), kLimit).error();
  EXPECT_EQ(error.code, Code::Denied);
  EXPECT_EQ(error.message.find("xyzzy"), std::string::npos) << error.message;
}

TEST(RedisLeases, ClosedPortIsUnavailableUntilServerReturns) {
  RedisServer server;
  const auto table = open_redis_leases({server.url(), ""}).value();
  ASSERT_TRUE(table->try_acquire(wanted(1), "a", 60s, kLimit).value());
  server.stop();
  EXPECT_EQ(table->remaining_ttl(wanted(1), kLimit).error().code, Code::Unavailable);
  const Error closed = table->remaining_ttl(wanted(1), kLimit).error();
  EXPECT_EQ(closed.code, Code::Unavailable);
  EXPECT_NE(closed.message.find("Connection refused"), std::string::npos) << closed.message;
  ASSERT_TRUE(server.start());
  EXPECT_EQ(table->remaining_ttl(wanted(1), kLimit).value(), 0s) << "it restarted empty";
}

TEST(RedisLeases, ServerRestartBetweenRequestsIsTransparent) {
  RedisServer server;
  const auto table = open_redis_leases({server.url(), ""}).value();
  ASSERT_TRUE(table->probe(kLimit).has_value());
  ASSERT_TRUE(server.start());
  EXPECT_TRUE(table->try_acquire(wanted(1), "a", 60s, kLimit).value())
      << "the broken connection was not detected before it was used";
}

TEST(RedisLeases, SilentServerCostsTimeout) {
  const RedisServer server;
  const auto known = open_redis_leases({server.url(), ""}).value();
  ASSERT_TRUE(known->probe(kLimit).has_value());
  server.pause();
  const auto fresh = open_redis_leases({server.url(), ""}).value();
  for (LeaseTable* table : {known.get(), fresh.get()}) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(table->try_acquire(wanted(1), "a", 60s, 100ms).error().code, Code::TimedOut);
    EXPECT_GE(ms_since(start), 99);
    EXPECT_LT(ms_since(start), 10'000);
  }
  server.resume();
  EXPECT_TRUE(known->probe(kLimit).has_value());
  // The server may have executed the request from the pause by now; its response must not be used for this request.
  EXPECT_TRUE(known->try_acquire(wanted(2), "a", 60s, kLimit).value());
}

TEST(RedisLeases, FailingServerIsUnavailable) {
  const RedisServer server({"", "", "127.0.0.1", {"replicaof 127.0.0.1 1"}});
  const auto table = open_redis_leases({server.url(), ""}).value();
  EXPECT_EQ(table->try_acquire(wanted(1), "a", 60s, kLimit).error().code, Code::Unavailable) << "READONLY";
  const RedisServer full({"", "", "127.0.0.1", {"maxmemory 1"}});
  const auto other = open_redis_leases({full.url(), ""}).value();
  EXPECT_EQ(other->try_acquire(wanted(1), "a", 60s, kLimit).error().code, Code::Unavailable) << "OOM";
}

TEST(RedisLeases, OtherValueIsCorrupt) {
  const RedisServer server;
  const auto table = open_redis_leases({server.url(), ""}).value();
  (void)server.ask({"set", "kiln:1:lease:" + wanted(1).hex(), "for ever"});
  EXPECT_EQ(table->remaining_ttl(wanted(1), kLimit).error().code, Code::Corrupt) << "all keys of kiln expire";
}

// A server that sends the same bytes to every client, regardless of the request.
class Parrot {
 public:
  explicit Parrot(const std::string& line)
      : child_([line](const Forked::Side& side) {
          const Fd listener(socket(AF_INET, SOCK_STREAM, 0));
          sockaddr_in address{};
          address.sin_family = AF_INET;
          address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
          socklen_t size = sizeof address;
          (void)bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size);
          (void)listen(listener.get(), 8);
          (void)getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size);
          side.say(std::to_string(ntohs(address.sin_port)));
          for (;;) {
            const Fd client(accept(listener.get(), nullptr, nullptr));
            char buffer[1024];
            while (recv(client.get(), buffer, sizeof buffer, 0) > 0) {
              if (send(client.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) break;
            }
          }
        }) {
    url_ = "redis://127.0.0.1:" + child_.line();
  }
  const std::string& url() const { return url_; }

 private:
  Forked child_;
  std::string url_;
};

TEST(RedisLeases, InvalidProtocolIsCorrupt) {
  for (const std::string& line :
       {std::string("HTTP/1.1 400 Bad Request\r\n\r\n"), std::string("+YES\r\n"), std::string(":7\r\n"),
        std::string(":-9\r\n"), std::string("*2\r\n:1\r\n:1\r\n"), std::string("*2147483647\r\n"),
        std::string("*-1\r\n"), std::string("$5\r\nhello\r\n"), std::string("$-7\r\n"),
        std::string("$9999999999\r\n") + std::string(40'000, 'x'), "+" + std::string(40'000, 'x')}) {
    const Parrot parrot(line);
    const auto table = open_redis_leases({parrot.url(), ""}).value();
    const auto renewed = table->renew(wanted(1), "a", 60s, kLimit);
    ASSERT_FALSE(renewed.has_value()) << line.substr(0, 40);
    EXPECT_EQ(renewed.error().code, Code::Corrupt) << line.substr(0, 40);
    const auto taken = table->try_acquire(wanted(1), "a", 60s, kLimit);
    EXPECT_TRUE(!taken.has_value() || !*taken) << line.substr(0, 40);
  }
}

TEST(RedisLeases, ExtraResponseIsNotUsedForNextRequest) {
  const Parrot parrot(":1\r\n:0\r\n");
  const auto table = open_redis_leases({parrot.url(), ""}).value();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(table->renew(wanted(1), "a", 60s, kLimit).value()) << i;
}

TEST(RedisLeases, UrlWithPasswordIsRejectedAndNotRepeated) {
  for (const char* url :
       {"redis://kiln:xyzzy@host", "redis://:xyzzy@host:1", "redis://a:b:xyzzy@host", "redis://xyzzy!@h"}) {
    const Error error = error_of_open(url);
    EXPECT_EQ(error.code, Code::InvalidArgument) << url;
    EXPECT_EQ(error.message.find("xyzzy"), std::string::npos) << error.message;
  }
  EXPECT_NE(error_of_open("redis://kiln:xyzzy@host").message.find("lease.password_file"), std::string::npos);
}

TEST(RedisLeases, ParseValidAndRejectInvalidUrls) {
  for (const char* url :
       {"redis://host", "redis://host:1", "redis://[::1]:7/2", "redis://10.0.0.1/", "redis://[fe80::1]"}) {
    EXPECT_TRUE(open_redis_leases({url, ""}).has_value()) << url;
  }
  for (const char* url : {"", "host", "http://host", "redis://", "redis://:7", "redis://host:0", "redis://host:99999",
                          "redis://host:", "redis://host:1x", "redis://host/x", "redis://[::1", "redis://[::1]7",
                          "redis://host name", "redis://@host", "redis://host/-1"}) {
    EXPECT_EQ(error_of_open(url).code, Code::InvalidArgument) << url;
  }
  EXPECT_EQ(open_redis_leases({"redis://[::1]:7/2", ""}).value()->describe(), "redis://[::1]:7/2");
  EXPECT_EQ(error_of_open("redis://kiln@host").code, Code::InvalidArgument) << "a user needs a password";
  const Error tls = error_of_open("rediss://host");
  EXPECT_EQ(tls.code, Code::Unsupported);
  EXPECT_NE(tls.message.find("docs/how-to/share-a-cache.md"), std::string::npos);
}

TEST(RedisLeases, OpenOneConnectionWithFirstRequest) {
  const RedisServer server;
  const auto connections = [&server] {
    const std::string said = server.ask({"info", "stats"});
    const std::size_t at = said.find("total_connections_received:");
    return std::stol(said.substr(at + 27));
  };
  const long before = connections();
  const auto table = open_redis_leases({server.url(), ""}).value();
  EXPECT_EQ(connections(), before + 1) << "only the connection of the observer";
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&table] {
      for (int i = 0; i < 20; ++i) (void)table->remaining_ttl(wanted(i), kLimit);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(connections(), before + 3);
}

// A host with claims in a Redis server and the default time budget.
struct Claimant {
  explicit Claimant(const RedisServer& server) {
    FleetPolicy policy = quick_fleet();
    policy.budget = 100ms;
    policy.initial_backoff = 50ms;
    claims.emplace(fleet_parts(open_redis_leases({server.url(), ""}).value(), policy, log.emitter()));
  }
  // Returns the time of a claim that ends as unavailable, in milliseconds.
  // The claim of a request that a caller waits for.
  double ms_unavailable(int number) {
    const auto start = std::chrono::steady_clock::now();
    ServerTimeBudget budget(FleetPolicy().budget);
    const auto answer = claims->acquire(wanted(number), 30s, {.server_budget = &budget});
    EXPECT_EQ(answer.outcome, Claims::Outcome::Unavailable);
    EXPECT_FALSE(answer.reason.empty());
    return ms_since(start);
  }
  EventLog log;
  std::optional<FleetClaims> claims;
};

TEST(ClaimsInRedis, PausedServerCostsBudgetOnceAndRecovers) {
  const RedisServer server;
  Claimant host(server);
  server.pause();
  const double first = host.ms_unavailable(1);
  const SchedulingDelayMonitor delay_monitor;
  double rest = 0;
  for (int i = 0; i < 20; ++i) rest = std::max(rest, host.ms_unavailable(1));
  const double lost = std::chrono::duration<double, std::milli>(delay_monitor.lost()).count();
  std::printf("paused server: the first claim took %.1f ms, the slowest of 20 after it %.3f ms\n", first, rest);
  EXPECT_LT(first, 10'000);
  EXPECT_LT(rest, 90 + lost) << "a later claim waited for the server";
  EXPECT_EQ(host.log.count(Event::Kind::RemoteUnavailable), 1u);
  server.resume();
  EXPECT_TRUE(eventually([&] { return host.log.count(Event::Kind::RemoteRecovered) >= 1; }));
  EXPECT_TRUE(
      eventually([&] { return host.claims->acquire(wanted(2), 30s, {}).outcome == Claims::Outcome::Acquired; }));
}

TEST(ClaimsInRedis, ServerStoppedDuringWaitIsUnavailable) {
  RedisServer server;
  Claimant holder(server);
  Claimant host(server);
  Claims::AcquireResult mine;
  ASSERT_TRUE(eventually([&] {
    mine = holder.claims->acquire(wanted(1), 0ms, {});
    return mine.outcome == Claims::Outcome::Acquired;
  })) << mine.reason;
  std::thread later([&server] {
    std::this_thread::sleep_for(60ms);
    server.stop();
  });
  EXPECT_LT(host.ms_unavailable(1), 20'000);
  later.join();
  EXPECT_TRUE(eventually([&] { return holder.log.count(Event::Kind::LeaseLost) == 1; }));
}

TEST(RedisLeases, UnknownHostNameIsUnavailable) {
  const auto table = open_redis_leases({"redis://no-such-host.invalid", ""}).value();
  const auto start = std::chrono::steady_clock::now();
  const Code code = table->remaining_ttl(wanted(1), 500ms).error().code;
  EXPECT_TRUE(code == Code::Unavailable || code == Code::TimedOut);
  EXPECT_LT(ms_since(start), 5000);
  const RedisServer server;
  const auto local = open_redis_leases({"redis://localhost:" + std::to_string(server.port()), ""}).value();
  EXPECT_TRUE(local->probe(kLimit).has_value());
}

}  // namespace
}  // namespace kiln::test
