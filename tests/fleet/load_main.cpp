// Many hosts of a fleet in one process: each is a thread with its own connections to Redis and to the store, and the
// road that a session goes: Resolver, GuardedStore over RemoteStore, FleetClaims over RedisLeases, by the same policy.
// What it compiles is a sleep, which is counted. Hosts of one process share its courier.
//   load_main HOSTS KEYS COMPILE_MS REDIS STORE TRUST_FOLDER SEED
// It says `ready` when all connections are open, and begins when its standard input ends.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file_digests.hpp"
#include "http/http_depot.hpp"
#include "observe/observer.hpp"
#include "redis/redis_leases.hpp"
#include "remote/fleet_claims.hpp"
#include "remote/guarded_store.hpp"
#include "remote/remote_store.hpp"
#include "support/fake_compiler.hpp"
#include "support/recipes.hpp"
#include "trust/signer.hpp"
#include "warm/resolver.hpp"

namespace {

using namespace kiln;
using std::chrono::milliseconds;

struct Load {
  unsigned hosts = 0;
  unsigned keys = 0;
  std::string redis;
  std::string address;  // of the store
  std::shared_ptr<const TrustPolicy> policy;
  std::shared_ptr<const Signer> signer;
  std::shared_ptr<Courier> courier;
  FleetPolicy numbers;
  test::FakeCompiler compiler;
  std::vector<std::atomic<unsigned>> counts = std::vector<std::atomic<unsigned>>(64);
  std::atomic<unsigned> connected{0};
  std::atomic<unsigned> failed{0};
  std::atomic<bool> go{false};
  Observer observer;
};

std::shared_ptr<ServerGuard> guard_of(Load& load, std::string name,
                                      std::function<Status(std::chrono::nanoseconds)> probe) {
  ServerGuard::Parts parts;
  parts.name = std::move(name);
  parts.probe = std::move(probe);
  parts.courier = load.courier;
  parts.policy = load.numbers;
  parts.observer = load.observer;
  return ServerGuard::make(std::move(parts));
}

std::shared_ptr<Store> store_of(Load& load, const std::shared_ptr<Depot>& depot) {
  RemoteStore::Parts remote;
  remote.depot = depot;
  remote.read_limit = load.numbers.budget;
  remote.policy = load.policy;
  remote.signer = load.signer;
  remote.observer = load.observer;
  GuardedStore::Parts guarded;
  guarded.inner = std::make_shared<RemoteStore>(std::move(remote));
  guarded.guard = guard_of(load, "store", [depot](auto limit) { return depot->probe(limit); });
  guarded.courier = load.courier;
  guarded.policy = load.numbers;
  guarded.observer = load.observer;
  return std::make_shared<GuardedStore>(std::move(guarded));
}

std::unique_ptr<FleetClaims> claims_of(Load& load, const std::shared_ptr<LeaseTable>& table) {
  FleetClaims::Parts claims;
  claims.table = table;
  claims.guard = guard_of(load, "leases", [table](auto limit) { return table->probe(limit); });
  claims.courier = load.courier;
  claims.policy = load.numbers;
  claims.observer = load.observer;
  return std::make_unique<FleetClaims>(std::move(claims));
}

// One host, from its first connection to its last key.
void be_a_host(Load& load) {
  const std::shared_ptr<LeaseTable> table = open_redis_leases({load.redis, {}, {}}).value();
  const std::shared_ptr<Depot> depot = open_http_depot({load.address, {}, {}, {}, {}}).value();
  for (int attempt = 0; attempt < 100 && !table->probe(std::chrono::seconds(5)).ok(); ++attempt) usleep(10'000);
  for (int attempt = 0; attempt < 100 && !depot->probe(std::chrono::seconds(5)).ok(); ++attempt) usleep(10'000);
  ++load.connected;
  load.go.wait(false);
  const std::shared_ptr<Store> store = store_of(load, depot);
  const std::unique_ptr<FleetClaims> claims = claims_of(load, table);
  FileDigests digests("");
  Resolver::Parts parts;
  parts.store = store.get();
  parts.fleet = claims.get();
  parts.digests = &digests;
  parts.observer = load.observer;
  parts.server_time = std::chrono::duration_cast<milliseconds>(load.numbers.budget);
  parts.lease = std::chrono::duration_cast<milliseconds>(load.numbers.lease);
  Resolver resolver(parts);
  for (unsigned key = 0; key < load.keys; ++key) {
    const Unit unit = Unit::of_kind("fake", "unit" + std::to_string(key), "source " + std::to_string(key));
    Recipe recipe = test::recipe_for(load.compiler, unit, Target::sm(90));
    recipe.closed = true;
    const auto answer = resolver.get(recipe, load.compiler);
    if (!answer || answer->artifact.bytes.view() != "compiled source " + std::to_string(key)) ++load.failed;
  }
}

unsigned count(const Load& load, Event::Kind kind) { return load.counts.at(static_cast<std::size_t>(kind)); }

}  // namespace

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (argc != 8) return 2;
  Load load;
  load.hosts = static_cast<unsigned>(std::atoi(argv[1]));
  load.keys = static_cast<unsigned>(std::atoi(argv[2]));
  load.compiler.takes = milliseconds(std::atoi(argv[3]));
  load.redis = argv[4];
  load.address = argv[5];
  const std::string folder = argv[6];
  TrustPolicy policy;
  auto key = SecretKey::read(folder + "/load.key").value();
  policy.trust(key.public_key(), "fleet/load");
  load.policy = std::make_shared<const TrustPolicy>(policy);
  load.signer = std::make_shared<const Signer>(Signer::ci(std::move(key), "fleet/load", 0).value());
  // Thousands of hosts share two cores with the servers that they ask, so an answer takes as long as its turn does.
  load.numbers.budget = std::chrono::seconds(60);
  load.courier = std::make_shared<Courier>(load.numbers);
  load.observer = Observer([&load](const Event& event) {
    // The first few say what went wrong; thousands more would say the same.
    if (event.kind == Event::Kind::RemoteUnavailable && count(load, event.kind) < 3) {
      std::printf("event remote_unavailable %s\n", event.message.c_str());
    }
    ++load.counts.at(static_cast<std::size_t>(event.kind));
  });
  std::vector<std::thread> hosts;
  for (unsigned i = 0; i < load.hosts; ++i) hosts.emplace_back([&load] { be_a_host(load); });
  while (load.connected < load.hosts) usleep(10'000);
  std::printf("ready connections=%u\n", load.connected.load());
  std::fflush(stdout);
  char byte = 0;
  while (read(0, &byte, 1) > 0) {
  }
  load.go = true;
  load.go.notify_all();
  for (std::thread& host : hosts) host.join();
  std::printf(
      "done compiles=%d failed=%u hits=%u lease_waited=%u hedged=%u remote_unavailable=%u claim_unavailable=%u\n",
      load.compiler.compiles.load(), load.failed.load(), count(load, Event::Kind::Hit),
      count(load, Event::Kind::LeaseWaited), count(load, Event::Kind::Hedged),
      count(load, Event::Kind::RemoteUnavailable), count(load, Event::Kind::ClaimUnavailable));
  load.courier->stop();
  return 0;
}
