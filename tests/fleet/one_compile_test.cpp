// Many real processes on several hosts go for the same cold keys: each is compiled once in the whole fleet.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "fleet/rig.hpp"

namespace kiln::test {
namespace {

struct Size {
  unsigned hosts = campaign_number("KILN_FLEET_HOSTS", 2);
  unsigned processes = campaign_number("KILN_FLEET_PROCESSES", 8);  // of each host
  unsigned keys = campaign_number("KILN_FLEET_KEYS", 3);
  unsigned rounds = campaign_number("KILN_FLEET_ROUNDS", 1);
  std::string kind = std::getenv("KILN_FLEET_KIND") != nullptr ? std::getenv("KILN_FLEET_KIND") : "header";
};

struct Round {
  double seconds = 0;     // until the last process was warm
  unsigned compiles = 0;  // of all processes
};

// Everything that a campaign's reader wants to know of a round.
void print(const std::vector<FleetProcess>& all, const FleetRig& rig) {
  const std::vector<double> started = sorted_numbers(all, "start", "ms");
  const std::vector<double> warm = sorted_numbers(all, "warm", "ms");
  const std::vector<double> cpu = sorted_numbers(all, "end", "cpu_ms");
  double programs = 0;
  for (const double ms : cpu) programs += ms / 1e3;
  std::printf("  started first %.1f s, last %.1f s; warm first %.1f, median %.1f, last %.1f s\n", started.front() / 1e3,
              started.back() / 1e3, warm.front() / 1e3, median(warm) / 1e3, warm.back() / 1e3);
  std::printf("  compiles=%u remote_hits=%u disk_hits=%u uploads=%u lease_waits=%u hedges=%u\n",
              total(all, "end", "compiled"), total(all, "end", "hit_remote"), total(all, "end", "hit_disk"),
              total(all, "end", "uploaded"), total(all, "end", "lease_waited_finished"), total(all, "end", "hedged"));
  std::printf("  processor time: programs %.1f s (median %.0f ms, most %.0f ms each), their workers %.1f s\n", programs,
              median(cpu), cpu.back(), total(all, "end", "workers_cpu_ms") / 1e3);
  std::printf("  redis: %llu SET, %llu EXISTS/GET, %llu scripts; on the server %llu ac, %llu cas\n",
              static_cast<unsigned long long>(rig.redis_calls("set")),
              static_cast<unsigned long long>(rig.redis_calls("exists") + rig.redis_calls("get")),
              static_cast<unsigned long long>(rig.redis_calls("eval") + rig.redis_calls("evalsha")),
              static_cast<unsigned long long>(rig.stored("ac")), static_cast<unsigned long long>(rig.stored("cas")));
  std::fputs(troubles(all).c_str(), stdout);
}

Round fleet_round(FleetRig& rig, const Size& size) {
  rig.make_cold();
  const std::string since = "since=" + std::to_string(monotonic_now());
  std::vector<FleetProcess> all;
  for (unsigned i = 0; i < size.processes; ++i) {
    for (unsigned host = 0; host < size.hosts; ++host) {
      all.push_back(rig.start(host, {std::to_string(size.keys), size.kind, since}));
    }
  }
  std::set<std::string> digests;
  for (FleetProcess& process : all) {
    EXPECT_EQ(process.exit_code(), 0) << process.output();
    digests.insert(process.value("warm", "digest"));
  }
  EXPECT_EQ(digests.size(), 1U) << "not all processes got the same code";
  print(all, rig);
  return {sorted_numbers(all, "warm", "ms").back() / 1e3, total(all, "end", "compiled")};
}

// The same units by workers alone: one program, no store, no claims, nobody else.
double bare_round(FleetRig& rig, const Size& size) {
  rig.make_cold();
  const std::string since = "since=" + std::to_string(monotonic_now());
  const Variables bare = {{"KILN_DISABLE", "1"}, {"KILN_REMOTE", ""}, {"KILN_LEASE", ""}, {"KILN_JOBS", "2"}};
  FleetProcess process = rig.start(0, {std::to_string(size.keys), size.kind, since}, bare);
  EXPECT_EQ(process.exit_code(), 0) << process.output();
  EXPECT_EQ(process.number("end", "compiled"), size.keys);
  std::printf("  bare, 2 workers: %.1f s, their processor time %.1f s\n", process.number("warm", "ms") / 1e3,
              process.number("end", "workers_cpu_ms") / 1e3);
  return process.number("warm", "ms") / 1e3;
}

TEST(Fleet, CompilesEachKeyOnceHoweverManyProcessesAsk) {
  if (const std::string why = FleetRig::unavailable(); !why.empty()) GTEST_SKIP() << why;
  const Size size;
  FleetRig rig(size.hosts);
  std::vector<double> bare;
  std::vector<double> fleet;
  for (unsigned round = 0; round < size.rounds; ++round) {
    std::printf("round %u\n", round + 1);
    bare.push_back(bare_round(rig, size));
    const Round result = fleet_round(rig, size);
    EXPECT_EQ(result.compiles, size.keys);
    fleet.push_back(result.seconds);
  }
  std::printf(
      "%u processes on %u hosts, %u cold keys (%s): the last warm after %s s; bare workers %s s; ratio of the medians "
      "%.2f\n",
      size.hosts * size.processes, size.hosts, size.keys, size.kind.c_str(), spread(fleet).c_str(),
      spread(bare).c_str(), median(fleet) / median(bare));
  // Of one round of small keys most is the start of the processes: only a campaign measures.
  if (size.rounds < 3) return;
  EXPECT_LE(median(fleet) / median(bare), 1.3);
}

}  // namespace
}  // namespace kiln::test
