// SPDX-License-Identifier: Apache-2.0
// kiln-fleet-real: runs a scenario of kiln-fleet-sim with real clients against a real nginx and a real redis-server on
// this machine, to compare predictions with measurements. docs/internals/fleet-simulation.md.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.hpp"
#include "bench/fleet/options.hpp"
#include "bench/fleet/outcome.hpp"
#include "bench/fleet/real_host.hpp"
#include "support/servers/nginx.hpp"
#include "support/servers/redis.hpp"

namespace {

using namespace kiln;
using namespace kiln::fleet;
using Clock = std::chrono::steady_clock;

// State shared by all threads of a run.
struct Run {
  const Scenario& scenario;
  std::vector<std::unique_ptr<RealHost>> hosts;
  Clock::time_point start;
  Mutex mutex;
  std::vector<std::uint32_t> next KILN_GUARDED_BY(mutex);
  std::vector<std::uint32_t> done KILN_GUARDED_BY(mutex);
  std::vector<double> warm KILN_GUARDED_BY(mutex);
  std::uint64_t openings KILN_GUARDED_BY(mutex) = 0;
};

// Counts opened circuits and prints the reasons of the first few.
void note(Run& run, const kiln::Event& event) {
  if (event.kind != kiln::Event::Kind::RemoteUnavailable) return;
  const MutexLock lock(run.mutex);
  if (++run.openings <= 5) {
    std::fprintf(stderr, "%.2f s: %s\n", seconds(Clock::now() - run.start), event.message.c_str());
  }
}

void walk_lane(Run& run, std::uint32_t host) {
  const Batch& batch = run.scenario.measured();
  std::this_thread::sleep_until(run.start + start_of(run.scenario, host, batch));
  while (true) {
    std::uint32_t number = 0;
    {
      const MutexLock lock(run.mutex);
      if (run.next[host] == batch.keys) return;
      number = run.next[host]++;
    }
    run.hosts[host]->resolver(key_at(run.scenario, host, batch, number));
    const MutexLock lock(run.mutex);
    if (++run.done[host] == batch.keys) run.warm.push_back(seconds(Clock::now() - run.start));
  }
}

ServerEndpoints trusted_place(const std::string& http, const std::string& redis) {
  const SecretKey authority = SecretKey::generate();
  SecretKey host = SecretKey::generate();
  auto trust = std::make_shared<TrustPolicy>();
  trust->add_key(authority.public_key(), "fleet/live");
  trust->trust_live_namespace("fleet/live", 7);
  const std::uint64_t day = day_of(system_clock().wall());
  const Certificate certificate = Certificate::make(authority, host.public_key(), "fleet/live", day + 7);
  return {http, redis, trust, std::make_shared<Signer>(Signer::live(std::move(host), certificate).value()), {}};
}

double cpu_seconds(int who) {
  rusage used{};
  getrusage(who, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

void play(Run& run, const ServerEndpoints& place) {
  for (std::uint32_t host = 0; host < run.scenario.hosts; ++host) {
    run.hosts.push_back(std::make_unique<RealHost>(run.scenario, place));
  }
  run.start = Clock::now() + std::chrono::seconds(1);
  std::vector<std::thread> lanes;
  for (std::uint32_t host = 0; host < run.scenario.hosts; ++host) {
    for (unsigned lane = 0; lane < run.scenario.lanes; ++lane)
      lanes.emplace_back([&run, host] { walk_lane(run, host); });
  }
  for (std::thread& lane : lanes) lane.join();
  for (const auto& host : run.hosts) host->finish();
}

void report(Run& run, std::size_t http, std::uint64_t leases) {
  std::uint64_t compiles = 0;
  std::uint64_t hits = 0;
  std::uint64_t rejected = 0;
  for (const auto& host : run.hosts) {
    compiles += host->compiles();
    hits += host->hits();
    rejected += host->rejected();
  }
  const MutexLock lock(run.mutex);
  std::printf("{\"scenario\":\"%s\",\"hosts\":%u,\"keys\":%u,\"lanes\":%u,\"window_s\":%g,\"seed\":%llu,",
              run.scenario.name.c_str(), run.scenario.hosts, run.scenario.keys, run.scenario.lanes, run.scenario.window,
              static_cast<unsigned long long>(run.scenario.seed));
  std::printf(
      "\"compiles\":%llu,\"hits\":%llu,\"refused\":%llu,\"breaker_openings\":%llu,\"http_requests\":%zu,\"lease_ops\":%"
      "llu,",
      static_cast<unsigned long long>(compiles), static_cast<unsigned long long>(hits),
      static_cast<unsigned long long>(rejected), static_cast<unsigned long long>(run.openings), http,
      static_cast<unsigned long long>(leases));
  std::printf(
      "\"p50_warm_s\":%.3f,\"p99_warm_s\":%.3f,\"all_warm_s\":%.3f,\"client_cpu_s\":%.2f,\"server_cpu_s\":%.2f}\n",
      percentile(run.warm, 0.5), percentile(run.warm, 0.99), percentile(run.warm, 1), cpu_seconds(RUSAGE_SELF),
      cpu_seconds(RUSAGE_CHILDREN));
}

void allow_many_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int count, char** words) {
  Scenario scenario;
  scenario.stalled = 0;
  bool json = false;
  const std::string problem = read_options({words + 1, words + count}, scenario, json);
  if (!problem.empty() || scenario.batches.size() != 1) {
    std::fprintf(stderr, "kiln-fleet-real: %s\n%s",
                 problem.empty() ? "the scenario must have one batch" : problem.c_str(), usage().c_str());
    return 2;
  }
  if (!test::Nginx::available() || !test::RedisServer::available()) {
    std::fprintf(stderr, "kiln-fleet-real: needs nginx and redis-server; tools/setup.sh installs them\n");
    return 3;
  }
  allow_many_files();
  test::NginxOptions options;
  options.connections = 16384;
  options.workers = 2;
  auto nginx = std::make_optional<test::Nginx>(options);
  auto redis = std::make_optional<test::RedisServer>(test::RedisServer::Options{.lines = {"maxclients 20000"}});
  Run run{scenario, {}, {}, {}, std::vector<std::uint32_t>(scenario.hosts), std::vector<std::uint32_t>(scenario.hosts),
          {}};
  ServerEndpoints place = trusted_place(nginx->url(), redis->url());
  place.emitter = EventEmitter([&run](const kiln::Event& event) { note(run, event); });
  play(run, place);
  const std::size_t http = nginx->requests();
  const std::uint64_t leases = redis->calls("set") + redis->calls("pttl") + redis->calls("eval");
  nginx.reset();
  redis.reset();
  report(run, http, leases);
  return 0;
}
