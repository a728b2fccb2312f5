#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/http_depot.hpp"
#include "remote/guarded_store.hpp"
#include "remote/remote_store.hpp"
#include "store/allowance.hpp"
#include "support/artifacts.hpp"
#include "support/event_log.hpp"
#include "support/eventually.hpp"
#include "support/files.hpp"
#include "support/nginx.hpp"
#include "support/own_network.hpp"
#include "support/own_process.hpp"
#include "support/pacer.hpp"
#include "support/patience.hpp"
#include "support/remote_rig.hpp"
#include "support/rude_server.hpp"

namespace kiln::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

double milliseconds_of(nanoseconds time) { return std::chrono::duration<double, std::milli>(time).count(); }

// What a machine that does other work too may add, beside what it is late by for everybody.
constexpr double kSlackMs = 50;

/// The remote store of a host as a session makes it, at this address.
class RemoteHost {
 public:
  explicit RemoteHost(const std::string& url, const FleetPolicy& policy = {}) : policy_(policy) {
    const std::shared_ptr<Depot> depot = open_http_depot({url}).value();
    RemoteStore::Parts remote;
    remote.depot = depot;
    remote.policy = std::make_shared<const TrustPolicy>(trust_.policy());
    remote.signer = trust_.ci_signer();
    remote.observer = log_.observer();
    ServerGuard::Parts guard;
    guard.name = url;
    guard.probe = [depot](nanoseconds limit) { return depot->probe(limit); };
    guard.courier = courier_;
    guard.policy = policy_;
    guard.observer = log_.observer();
    guard_ = ServerGuard::make(std::move(guard));
    store_ = std::make_unique<GuardedStore>(GuardedStore::Parts{std::make_shared<RemoteStore>(std::move(remote)),
                                                                guard_, courier_, policy_, log_.observer()});
  }
  ~RemoteHost() { courier_->stop(); }
  RemoteHost(const RemoteHost&) = delete;
  RemoteHost& operator=(const RemoteHost&) = delete;

  struct Answer {
    bool hit = false;
    double ms = 0;
    double slack_ms = 0;  // what a limit of it may be exceeded by
  };
  /// What a `get` that begins now asks of this tier: closures, then the entry, within one budget.
  Answer get(std::uint64_t number) {
    const nanoseconds lost = pacer_.lost();
    const nanoseconds start = system_clock().steady();
    const Allowance allowance(policy_.budget);
    (void)store_->closures(request_number(number), 1);
    const auto hit = store_->get(key_number(number));
    const nanoseconds took = system_clock().steady() - start;
    EXPECT_TRUE(hit.ok());
    return {hit && hit->has_value(), milliseconds_of(took), kSlackMs + milliseconds_of(pacer_.lost() - lost)};
  }
  bool publish_later(std::uint64_t number) {
    return store_->put(key_number(number), artifact_of(key_number(number), 64 << 10)).ok();
  }
  bool publish(std::uint64_t number) {
    return publish_later(number) && courier_->drain(seconds(20)) && store_->counts().uploaded > 0;
  }
  /// As a session does.
  void end() { courier_->stop(); }

  const FleetPolicy& policy() const { return policy_; }
  bool asked() const { return guard_->closed(); }
  const Pacer& pacer() const { return pacer_; }
  EventLog& log() { return log_; }

 private:
  const Pacer pacer_;
  const FleetPolicy policy_;
  const TrustRig trust_;
  EventLog log_;
  std::shared_ptr<Courier> courier_ = std::make_shared<Courier>(policy_);
  std::shared_ptr<ServerGuard> guard_;
  std::unique_ptr<GuardedStore> store_;
};

TEST(BlackHole, TheFirstGetPaysTheBudgetOnceTheNextNothingAndItRecoversByItself) {
  if (!Nginx::available()) GTEST_SKIP() << "nginx is not installed";
  auto network = OwnNetwork::enter();
  if (!network) GTEST_SKIP() << network.error().message;
  const Nginx nginx;
  // One that has reached it, on a connection that stays: on a busy machine the budget may be over before nginx has its
  // turn.
  std::optional<RemoteHost> reached;
  std::uint64_t published = 0;
  ASSERT_TRUE(eventually([&] {
    reached.emplace(nginx.url());
    return reached->publish(++published) && reached->get(published).hit;
  }));
  RemoteHost& host = *reached;

  ASSERT_TRUE(network->drop(nginx.port()));
  const RemoteHost::Answer first = host.get(published);
  EXPECT_FALSE(first.hit);
  EXPECT_FALSE(host.asked());
  // While probes go out and come to nothing, too.
  std::vector<double> later;
  const nanoseconds end = system_clock().steady() + milliseconds(800);
  for (std::uint64_t number = 1; system_clock().steady() < end; ++number) {
    const RemoteHost::Answer answer = host.get(number % 100);
    EXPECT_FALSE(answer.hit);
    later.push_back(answer.ms);
    system_clock().sleep(std::chrono::microseconds(200));
  }
  EXPECT_EQ(host.log().count(Event::Kind::RemoteUnavailable), 1u);
  EXPECT_EQ(host.log().count(Event::Kind::RemoteBack), 0u);
  const nanoseconds lost = host.pacer().lost();
  const nanoseconds returned = system_clock().steady();
  ASSERT_TRUE(network->pass(nginx.port()));
  const bool back = eventually([&] { return host.get(published).hit; }, kPatience);
  const double recovered_ms = milliseconds_of(system_clock().steady() - returned);
  const double lost_ms = milliseconds_of(host.pacer().lost() - lost);

  std::sort(later.begin(), later.end());
  const double median_us = later[later.size() / 2] * 1000;
  std::printf(
      "figure: black_hole first_ms %.1f budget_ms %.0f later_gets %zu later_median_us %.1f later_max_us %.1f "
      "recovered_s %.2f\n",
      first.ms, milliseconds_of(host.policy().budget), later.size(), median_us, later.back() * 1000,
      recovered_ms / 1000);
  EXPECT_LT(first.ms, milliseconds_of(host.policy().budget) + first.slack_ms);
  EXPECT_LT(median_us, 1000);
  EXPECT_TRUE(back);
  EXPECT_LT(recovered_ms, 10'000 + lost_ms);
  // One each, unless the machine made nginx late once more.
  EXPECT_GE(host.log().count(Event::Kind::RemoteBack), 1u);
  EXPECT_EQ(host.log().count(Event::Kind::RemoteBack), host.log().count(Event::Kind::RemoteUnavailable));
}

TEST(BlackHole, AHostThatNeverReachedTheServerPaysNoMore) {
  if (!Nginx::available()) GTEST_SKIP() << "nginx is not installed";
  auto network = OwnNetwork::enter();
  if (!network) GTEST_SKIP() << network.error().message;
  const Nginx nginx;
  ASSERT_TRUE(network->drop(nginx.port()));
  RemoteHost host(nginx.url());
  const RemoteHost::Answer first = host.get(1);
  const RemoteHost::Answer second = host.get(2);
  std::printf("figure: black_hole_unconnected first_ms %.1f second_us %.1f\n", first.ms, second.ms * 1000);
  EXPECT_LT(first.ms, milliseconds_of(host.policy().budget) + first.slack_ms);
  EXPECT_LT(second.ms, second.slack_ms);
  EXPECT_FALSE(host.asked());
}

struct Trouble {
  const char* name;
  Manner manner;
  std::string says = {};
  bool gives_up = true;  // after one answer; garbage is forgiven a few times
  friend std::ostream& operator<<(std::ostream& out, const Trouble& trouble) { return out << trouble.name; }
};

class TroubledServer : public testing::TestWithParam<Trouble> {};

TEST_P(TroubledServer, CostsAGetItsBudgetAtMostAndIsAskedAgainOnlyIfItAnswers) {
  const RudeServer server(GetParam().manner, GetParam().says);
  const double budget_ms = milliseconds_of(FleetPolicy().budget);
  FleetPolicy policy;
  if (!GetParam().gives_up) policy.budget = kPatience;  // that it answers counts, however late the machine lets it
  RemoteHost host(server.url(), policy);
  const RemoteHost::Answer first = host.get(1);
  const RemoteHost::Answer second = host.get(2);
  std::printf("figure: troubled_server %s first_ms %.1f second_us %.1f\n", GetParam().name, first.ms, second.ms * 1000);
  EXPECT_FALSE(first.hit);
  EXPECT_FALSE(second.hit);
  EXPECT_LT(first.ms, budget_ms + first.slack_ms);
  EXPECT_EQ(host.asked(), !GetParam().gives_up);
  EXPECT_EQ(host.log().count(Event::Kind::RemoteUnavailable), GetParam().gives_up ? 1u : 0u);
  EXPECT_LT(second.ms, (GetParam().gives_up ? 0 : budget_ms) + second.slack_ms);
}

INSTANTIATE_TEST_SUITE_P(
    Each, TroubledServer,
    testing::Values(Trouble{"resetting", Manner::Resets}, Trouble{"closing", Manner::Closes},
                    Trouble{"silent", Manner::Silent}, Trouble{"slow", Manner::Slow},
                    Trouble{"resetting_midway", Manner::ResetsMidway},
                    Trouble{"endless_headers", Manner::EndlessHeaders, "", false},
                    Trouble{"garbage", Manner::Garbage, "", false}, Trouble{"truncating", Manner::Truncates, "", false},
                    Trouble{"answering_500", Manner::Says, "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"},
                    Trouble{"answering_503", Manner::Says, "HTTP/1.1 503 Oh\r\nContent-Length: 0\r\n\r\n"}),
    [](const testing::TestParamInfo<Trouble>& tested) { return std::string(tested.param.name); });

TEST(StoppedServer, OneThatRefusesConnectionsIsGivenUpAtOnceAndFoundAgain) {
  if (!Nginx::available()) GTEST_SKIP() << "nginx is not installed";
  Nginx nginx;
  RemoteHost host(nginx.url());
  ASSERT_TRUE(host.publish(1));
  nginx.stop();
  const RemoteHost::Answer first = host.get(1);
  EXPECT_FALSE(first.hit);
  EXPECT_FALSE(host.asked());
  EXPECT_LT(first.ms, milliseconds_of(host.policy().budget) + first.slack_ms);
  nginx.start();
  const nanoseconds returned = system_clock().steady();
  EXPECT_TRUE(eventually([&] { return host.get(1).hit; }));
  std::printf("figure: refused_connection first_ms %.1f recovered_s %.2f\n", first.ms,
              milliseconds_of(system_clock().steady() - returned) / 1000);
}

TEST(SilentServer, AnUploadThatNobodyTakesDoesNotHoldUpTheEndOfASession) {
  const RudeServer server(Manner::Silent);
  FleetPolicy policy;
  policy.drain_limit = nanoseconds(0);
  RemoteHost host(server.url(), policy);
  ASSERT_TRUE(host.publish_later(1));
  ASSERT_TRUE(eventually([&] { return server.connections() > 0; }));
  system_clock().sleep(milliseconds(50));  // by then all is sent, and it waits for the answer
  const nanoseconds start = system_clock().steady();
  host.end();
  const double ms = milliseconds_of(system_clock().steady() - start);
  std::printf("figure: silent_upload end_ms %.1f\n", ms);
  EXPECT_LT(ms, 5'000);  // libcurl looks once a second; the upload might take thirty
  EXPECT_EQ(host.log().count(Event::Kind::UploadDropped), 1u);
}

TEST(UnaskedServer, AHostWithARemoteThatItNeverAsksOpensNoConnectionAndStartsNoThread) {
  if (!Nginx::available()) GTEST_SKIP() << "nginx is not installed";
  const Nginx nginx;
  const std::size_t sockets = sockets_of_this_process();
  const bool has_libcurl = slurp("/proc/self/maps").find("libcurl") != std::string::npos;  // from another test
  {
    const RemoteHost host(nginx.url());
    EXPECT_TRUE(eventually([] { return threads_of_kiln() == 0; }));
    EXPECT_EQ(sockets_of_this_process(), sockets);
    EXPECT_EQ(slurp("/proc/self/maps").find("libcurl") != std::string::npos, has_libcurl);
  }
  EXPECT_EQ(nginx.requests(), 0u);
}

}  // namespace
}  // namespace kiln::test
