// SPDX-License-Identifier: Apache-2.0
// Many real processes on several hosts get the same uncached keys: the fleet compiles each key once, also if its
// servers have a tenth of the bandwidth.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <set>
#include <thread>
#include <utility>

#include "fleet/fleet_fixture.hpp"

namespace kiln::test {
namespace {

// A round ends after this time: its remaining processes are killed and count as failures. It takes less than a minute
// unless the processors are overloaded.
constexpr std::chrono::minutes kRoundLimit{5};

struct Size {
  unsigned hosts = campaign_number("KILN_FLEET_HOSTS", 2);
  unsigned processes = campaign_number("KILN_FLEET_PROCESSES", 8);  // per host
  unsigned keys = campaign_number("KILN_FLEET_KEYS", 3);
  unsigned rounds = campaign_number("KILN_FLEET_ROUNDS", 1);
  std::string kind = std::getenv("KILN_FLEET_KIND") != nullptr ? std::getenv("KILN_FLEET_KIND") : "header";
};

struct Round {
  double seconds = 0;      // until the last process was ready
  unsigned compiles = 0;   // total of all processes
  std::uint64_t sent = 0;  // bytes from the servers to hosts
  std::uint64_t peak = 0;  // the most of them in a second
};

/// Samples what the servers send, on its own thread.
class SendRate {
 public:
  explicit SendRate(const VirtualHosts& hosts)
      : thread_([this, &hosts](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            samples_.push_back(hosts.sent_by_servers());
            std::this_thread::sleep_for(kInterval);
          }
          samples_.push_back(hosts.sent_by_servers());
        }) {}
  /// Ends the sampling. Sets `sent` and `peak`.
  void finish(Round& round) {
    thread_.request_stop();
    thread_.join();
    round.sent = samples_.back() - samples_.front();
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      round.peak = std::max(round.peak, samples_[i] - samples_[i - std::min(i, kPerSecond)]);
    }
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{50};
  static constexpr std::size_t kPerSecond = 20;
  std::vector<std::uint64_t> samples_;
  std::jthread thread_;
};

// Prints the results of a round for the campaign report.
void print(const std::vector<FleetProcess>& all, const FleetFixture& fixture) {
  const std::vector<double> started = sorted_numbers(all, "start", "ms");
  const std::vector<double> warm = sorted_numbers(all, "warm", "ms");
  const std::vector<double> cpu = sorted_numbers(all, "end", "cpu_ms");
  double programs = 0;
  for (const double ms : cpu) programs += ms / 1e3;
  std::printf("  started first %.1f s, last %.1f s; ready first %.1f, median %.1f, last %.1f s\n",
              started.front() / 1e3, started.back() / 1e3, warm.front() / 1e3, median(warm) / 1e3, warm.back() / 1e3);
  std::printf("  compiles=%u remote_hits=%u disk_hits=%u uploads=%u lease_waits=%u hedges=%u\n",
              total(all, "end", "compiled"), total(all, "end", "hit_remote"), total(all, "end", "hit_disk"),
              total(all, "end", "uploaded"), total(all, "end", "lease_waited_finished"), total(all, "end", "hedged"));
  std::printf("  CPU time: programs %.1f s (median %.0f ms, most %.0f ms each), their workers %.1f s\n", programs,
              median(cpu), cpu.back(), total(all, "end", "workers_cpu_ms") / 1e3);
  std::printf("  redis: %llu SET, %llu EXISTS/GET, %llu scripts; on the server %llu ac, %llu cas\n",
              static_cast<unsigned long long>(fixture.redis_calls("set")),
              static_cast<unsigned long long>(fixture.redis_calls("exists") + fixture.redis_calls("get")),
              static_cast<unsigned long long>(fixture.redis_calls("eval") + fixture.redis_calls("evalsha")),
              static_cast<unsigned long long>(fixture.stored("ac")),
              static_cast<unsigned long long>(fixture.stored("cas")));
  std::fputs(problems(all).c_str(), stdout);
}

Round fleet_round(FleetFixture& fixture, const Size& size) {
  fixture.make_cold();
  SendRate rate(fixture.hosts());
  const std::string since = "since=" + std::to_string(monotonic_now());
  std::vector<FleetProcess> all;
  for (unsigned i = 0; i < size.processes; ++i) {
    for (unsigned host = 0; host < size.hosts; ++host) {
      all.push_back(fixture.start(host, {std::to_string(size.keys), size.kind, since}));
    }
  }
  const auto until = std::chrono::steady_clock::now() + kRoundLimit;
  std::set<std::string> digests;
  unsigned killed = 0;
  for (FleetProcess& process : all) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int code = process.exit_code(std::max(left, std::chrono::milliseconds(0)));
    if (code == FleetProcess::kStillRuns) {
      process.kill_now();
      ++killed;
      continue;
    }
    EXPECT_EQ(code, 0) << process.output();
    digests.insert(process.value("warm", "digest"));
  }
  EXPECT_EQ(killed, 0U) << "processes that were killed after " << kRoundLimit.count() << " minutes";
  EXPECT_EQ(digests.size(), 1U) << "not all processes got the same code";
  print(all, fixture);
  Round round{sorted_numbers(all, "warm", "ms").back() / 1e3, total(all, "end", "compiled")};
  if (killed > 0) round.seconds = std::chrono::duration<double>(kRoundLimit).count();
  rate.finish(round);
  std::printf("  servers sent %.0f KB, at most %.0f KB in a second\n", static_cast<double>(round.sent) / 1e3,
              static_cast<double>(round.peak) / 1e3);
  return round;
}

// Compiles the same units with workers only: one program, no store, no claims, no other host.
double bare_round(FleetFixture& fixture, const Size& size) {
  fixture.make_cold();
  const std::string since = "since=" + std::to_string(monotonic_now());
  const Variables bare = {{"KILN_DISABLE", "1"}, {"KILN_REMOTE", ""}, {"KILN_LEASE", ""}, {"KILN_JOBS", "2"}};
  FleetProcess process = fixture.start(0, {std::to_string(size.keys), size.kind, since}, bare);
  EXPECT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.number("end", "compiled"), size.keys);
  std::printf("  bare, 2 workers: %.1f s, their CPU time %.1f s\n", process.number("warm", "ms") / 1e3,
              process.number("end", "workers_cpu_ms") / 1e3);
  return process.number("warm", "ms") / 1e3;
}

/// Alternates rounds of bare workers and of the fleet. Returns the ratio of their medians, and the last round's rate.
std::pair<double, Round> compare(FleetFixture& fixture, const Size& size, const std::string& link) {
  std::vector<double> bare;
  std::vector<double> fleet;
  std::string compiles;
  Round last;
  for (unsigned round = 0; round < size.rounds; ++round) {
    std::printf("round %u, %s\n", round + 1, link.c_str());
    bare.push_back(bare_round(fixture, size));
    last = fleet_round(fixture, size);
    EXPECT_EQ(last.compiles, size.keys);
    fleet.push_back(last.seconds);
    compiles += " " + std::to_string(last.compiles);
  }
  std::printf(
      "%u processes on %u hosts, %u uncached keys (%s), %s: compiles%s; the last ready after %s s; bare workers %s s; "
      "ratio of the medians %.2f\n",
      size.hosts * size.processes, size.hosts, size.keys, size.kind.c_str(), link.c_str(), compiles.c_str(),
      spread(fleet).c_str(), spread(bare).c_str(), median(fleet) / median(bare));
  return {median(fleet) / median(bare), last};
}

TEST(Fleet, CompilesEachKeyOnceForManyProcesses) {
  if (const std::string reason = FleetFixture::unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const Size size;
  FleetFixture fixture(size.hosts);
  const auto [ratio, unlimited] = compare(fixture, size, "unlimited servers");
  // A round with small keys mostly measures the start of processes, so only a campaign checks the ratio.
  if (size.rounds >= 3) {
    EXPECT_LE(ratio, 1.3);
  }

  const std::uint64_t rate = std::max<std::uint64_t>(unlimited.peak / 10, 10'000);
  fixture.hosts().limit_servers(rate);
  (void)compare(fixture, size, "servers limited to " + std::to_string(rate / 1'000) + " KB/s");
}

}  // namespace
}  // namespace kiln::test
