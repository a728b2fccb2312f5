// SPDX-License-Identifier: Apache-2.0
// Many hosts of a fleet in one process. Each host is a thread with its own connections to Redis and to the store, and
// uses the call path of a session: Resolver, GuardedStore over RemoteStore, FleetClaims over RedisLeases, with the same
// policy. A compile is a sleep, which is counted. The hosts of one process share its background queue.
//   load_main HOSTS KEYS COMPILE_MS REDIS STORE TRUST_FOLDER SEED
// Prints `ready` when all connections are open, and starts when its standard input ends.
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

#include "base/files/file_digest_cache.hpp"
#include "engine/resolver.hpp"
#include "events/event_emitter.hpp"
#include "remote/fleet_claims.hpp"
#include "remote/guarded_store.hpp"
#include "remote/http/http_object_store.hpp"
#include "remote/redis/redis_leases.hpp"
#include "remote/remote_store.hpp"
#include "support/fakes/fake_compiler.hpp"
#include "support/fixtures/recipes.hpp"
#include "trust/signer.hpp"

namespace {

using namespace kiln;
using std::chrono::milliseconds;

struct Load {
  unsigned hosts = 0;
  unsigned keys = 0;
  std::string redis;
  std::string address;  // URL of the store
  std::shared_ptr<const TrustPolicy> policy;
  std::shared_ptr<const Signer> signer;
  std::shared_ptr<BackgroundQueue> background_queue;
  FleetPolicy numbers;
  test::FakeCompiler compiler;
  std::vector<std::atomic<unsigned>> counts = std::vector<std::atomic<unsigned>>(64);
  std::atomic<unsigned> connected{0};
  std::atomic<unsigned> failed{0};
  std::atomic<bool> go{false};
  EventEmitter emitter;
};

std::shared_ptr<ServerGuard> guard_of(Load& load, std::string name, std::function<Status(const Deadline&)> probe) {
  ServerGuard::Params params;
  params.name = std::move(name);
  params.probe = std::move(probe);
  params.background_queue = load.background_queue;
  params.policy = load.numbers;
  params.emitter = load.emitter;
  return ServerGuard::make(std::move(params));
}

std::shared_ptr<Store> store_of(Load& load, const std::shared_ptr<ObjectStore>& object_store) {
  RemoteStore::Params remote;
  remote.object_store = object_store;
  remote.read_limit = load.numbers.budget;
  remote.policy = load.policy;
  remote.signer = load.signer;
  remote.emitter = load.emitter;
  GuardedStore::Params guarded;
  guarded.inner = std::make_shared<RemoteStore>(std::move(remote));
  guarded.guard = guard_of(load, "store", [object_store](auto limit) { return object_store->probe(limit); });
  guarded.background_queue = load.background_queue;
  guarded.policy = load.numbers;
  guarded.emitter = load.emitter;
  return std::make_shared<GuardedStore>(std::move(guarded));
}

std::unique_ptr<FleetClaims> claims_of(Load& load, const std::shared_ptr<LeaseTable>& table) {
  FleetClaims::Params claims;
  claims.table = table;
  claims.guard = guard_of(load, "leases", [table](auto limit) { return table->probe(limit); });
  claims.background_queue = load.background_queue;
  claims.policy = load.numbers;
  claims.emitter = load.emitter;
  return std::make_unique<FleetClaims>(std::move(claims));
}

// Runs one host, from its first connection to its last key.
void be_a_host(Load& load) {
  const std::shared_ptr<LeaseTable> table = open_redis_leases({load.redis, {}}).value();
  const std::shared_ptr<ObjectStore> object_store = open_http_object_store({load.address, {}, {}, {}, {}}).value();
  for (int attempt = 0; attempt < 6000 && !table->probe(std::chrono::seconds(5)).has_value(); ++attempt) usleep(10'000);
  for (int attempt = 0; attempt < 6000 && !object_store->probe(std::chrono::seconds(5)).has_value(); ++attempt)
    usleep(10'000);
  ++load.connected;
  load.go.wait(false);
  const std::shared_ptr<Store> store = store_of(load, object_store);
  const std::unique_ptr<FleetClaims> claims = claims_of(load, table);
  FileDigestCache digests("");
  Resolver::Params params;
  params.store = store.get();
  params.fleet = claims.get();
  params.digests = &digests;
  params.emitter = load.emitter;
  params.server_time_budget = std::chrono::duration_cast<milliseconds>(load.numbers.budget);
  params.lease_ttl = std::chrono::duration_cast<milliseconds>(load.numbers.lease_ttl);
  Resolver resolver(params);
  for (unsigned key = 0; key < load.keys; ++key) {
    const Unit unit = Unit::of_kind("fake", "unit" + std::to_string(key), "source " + std::to_string(key));
    Recipe recipe = test::recipe_for(load.compiler, unit, Target::sm(90));
    recipe.self_contained = true;
    const auto answer = resolver.get(recipe, load.compiler, {});
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
  const std::string directory = argv[6];
  TrustPolicy policy;
  auto key = SecretKey::read(directory + "/load.key").value();
  policy.add_key(key.public_key(), "fleet/load");
  load.policy = std::make_shared<const TrustPolicy>(policy);
  load.signer = std::make_shared<const Signer>(Signer::ci(std::move(key), "fleet/load", 0).value());
  // Thousands of hosts share two cores with the servers, so responses are slow.
  load.numbers.budget = std::chrono::seconds(60);
  load.background_queue = std::make_shared<BackgroundQueue>(load.numbers);
  load.emitter = EventEmitter([&load](const Event& event) {
    // Print the first few; thousands more would be the same.
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
  load.background_queue->stop();
  return 0;
}
