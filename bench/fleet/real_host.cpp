#include "bench/fleet/real_host.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/hash.hpp"
#include "core/recipe.hpp"
#include "http/http_depot.hpp"
#include "redis/redis_leases.hpp"
#include "store/allowance.hpp"

namespace kiln::fleet {
namespace {

using Clock = std::chrono::steady_clock;

RequestKey request_of(std::uint32_t key) { return {sha256("request " + std::to_string(key))}; }

std::shared_ptr<ServerGuard> guard(const Scenario& scenario, const Observer& observer, std::shared_ptr<Courier> courier,
                                   std::string name, std::function<Status(Time)> probe) {
  ServerGuard::Parts parts;
  parts.name = std::move(name);
  parts.probe = std::move(probe);
  parts.courier = std::move(courier);
  parts.policy = scenario.policy;
  parts.observer = observer;
  return ServerGuard::make(std::move(parts));
}

}  // namespace

RealHost::RealHost(const Scenario& scenario, const RealPlace& place)
    : scenario_(scenario), courier_(std::make_shared<Courier>(scenario.policy)) {
  const std::shared_ptr<Depot> depot = open_http_depot({place.http, "", "", "", ""}).value();
  const std::shared_ptr<LeaseTable> table = open_redis_leases({place.redis, "", ""}).value();
  RemoteStore::Parts remote;
  remote.depot = depot;
  remote.policy = place.trust;
  remote.signer = place.signer;
  GuardedStore::Parts guarded;
  guarded.inner = std::make_shared<RemoteStore>(std::move(remote));
  guarded.guard =
      guard(scenario, place.observer, courier_, place.http, [depot](Time limit) { return depot->probe(limit); });
  guarded.courier = courier_;
  guarded.policy = scenario.policy;
  FleetClaims::Parts claims;
  claims.store = guarded.guard;
  store_ = std::make_shared<GuardedStore>(std::move(guarded));
  claims.table = table;
  claims.guard =
      guard(scenario, place.observer, courier_, place.redis, [table](Time limit) { return table->probe(limit); });
  claims.courier = courier_;
  claims.policy = scenario.policy;
  claims_ = std::make_unique<FleetClaims>(std::move(claims));
}

bool RealHost::look(std::uint32_t key) {
  const RequestKey request = request_of(key);
  const auto closures = store_->closures(request, 1);
  if (!closures || closures->empty()) return false;
  const auto hit = store_->get(key_of(request, closures->front()));
  if (!hit || !*hit) return false;
  ++hits_;
  return true;
}

void RealHost::road(std::uint32_t key) {
  Allowance allowance(scenario_.policy.budget);
  if (look(key)) return;
  const Time wait = std::chrono::seconds(30) + scenario_.policy.lease;
  const auto give_up = Clock::now() + wait;
  std::unique_ptr<Claim> claim;
  while (claim == nullptr) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - Clock::now());
    Claims::Answer answer = claims_->acquire(request_of(key), std::max(left, std::chrono::milliseconds(0)));
    claim = std::move(answer.claim);
    if (answer.outcome == Claims::Outcome::Unavailable || answer.outcome == Claims::Outcome::TimedOut) break;
    allowance.ask_afresh();
    if (look(key)) return;
  }
  compile(key);
}

void RealHost::compile(std::uint32_t key) {
  ++compiles_;
  std::this_thread::sleep_for(cost_of(scenario_, key));
  const RequestKey request = request_of(key);
  Artifact artifact;
  artifact.bytes = Bytes::of(std::string(scenario_.entry_bytes, static_cast<char>('a' + key % 26)));
  artifact.target = Target::sm(90);
  artifact.about = {"unit " + std::to_string(key), "a sleep", 1e3 * seconds(cost_of(scenario_, key)), ""};
  (void)store_->put(key_of(request, {}), artifact);
  (void)store_->add_closure(request, {});
}

}  // namespace kiln::fleet
