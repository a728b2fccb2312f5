// SPDX-License-Identifier: Apache-2.0
#include "bench/fleet/real_host.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "base/hash.hpp"
#include "core/recipe.hpp"
#include "remote/http/http_object_store.hpp"
#include "remote/redis/redis_leases.hpp"

namespace kiln::fleet {
namespace {

using Clock = std::chrono::steady_clock;

RequestKey request_of(std::uint32_t key) { return {sha256("request " + std::to_string(key))}; }

std::shared_ptr<ServerGuard> guard(const Scenario& scenario, const EventEmitter& emitter,
                                   std::shared_ptr<BackgroundQueue> background_queue, std::string name,
                                   std::function<Status(const Deadline&)> probe) {
  ServerGuard::Params params;
  params.name = std::move(name);
  params.probe = std::move(probe);
  params.background_queue = std::move(background_queue);
  params.policy = scenario.policy;
  params.emitter = emitter;
  return ServerGuard::make(std::move(params));
}

}  // namespace

RealHost::RealHost(const Scenario& scenario, const ServerEndpoints& place)
    : scenario_(scenario), background_queue_(std::make_shared<BackgroundQueue>(scenario.policy)) {
  const std::shared_ptr<ObjectStore> object_store = open_http_object_store({place.http, "", "", "", ""}).value();
  const std::shared_ptr<LeaseTable> table = open_redis_leases({place.redis, ""}).value();
  RemoteStore::Params remote;
  remote.object_store = object_store;
  remote.policy = place.trust;
  remote.signer = place.signer;
  GuardedStore::Params guarded;
  guarded.inner = std::make_shared<RemoteStore>(std::move(remote));
  guarded.guard = guard(scenario, place.emitter, background_queue_, place.http,
                        [object_store](const Deadline& deadline) { return object_store->probe(deadline); });
  guarded.background_queue = background_queue_;
  guarded.policy = scenario.policy;
  FleetClaims::Params claims;
  claims.store = guarded.guard;
  store_ = std::make_shared<GuardedStore>(std::move(guarded));
  claims.table = table;
  claims.guard = guard(scenario, place.emitter, background_queue_, place.redis,
                       [table](const Deadline& deadline) { return table->probe(deadline); });
  claims.background_queue = background_queue_;
  claims.policy = scenario.policy;
  claims_ = std::make_unique<FleetClaims>(std::move(claims));
}

bool RealHost::look(std::uint32_t key, const RequestContext& context) {
  const RequestKey request = request_of(key);
  const auto dependency_sets = store_->dependency_sets(request, 1, context);
  if (!dependency_sets || dependency_sets->empty()) return false;
  const auto hit = store_->get(artifact_key(request, dependency_sets->front()), context);
  if (!hit || !*hit) return false;
  ++hits_;
  return true;
}

void RealHost::resolver(std::uint32_t key) {
  const FleetPolicy& policy = scenario_.policy;
  ServerTimeBudget budget = scenario_.waited
                                ? ServerTimeBudget(policy.budget)
                                : ServerTimeBudget(policy.background_budget, Urgency(false), policy.budget);
  const RequestContext context{.server_budget = &budget};
  if (look(key, context)) return;
  const Time wait = std::chrono::seconds(30) + scenario_.policy.lease_ttl;
  const auto give_up = Clock::now() + wait;
  std::unique_ptr<Claim> claim;
  while (claim == nullptr) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - Clock::now());
    Claims::AcquireResult answer =
        claims_->acquire(request_of(key), std::max(left, std::chrono::milliseconds(0)), context);
    claim = std::move(answer.claim);
    if (answer.outcome == Claims::Outcome::Unavailable || answer.outcome == Claims::Outcome::TimedOut) break;
    budget.bypass_negative_cache();
    if (look(key, context)) return;
  }
  ServerTimeBudget none(Time(0));
  const bool refused = budget.is_refused() && claim == nullptr;
  compile(key, refused ? context.with_budget(none) : RequestContext{});
}

void RealHost::compile(std::uint32_t key, const RequestContext& context) {
  ++compiles_;
  std::this_thread::sleep_for(cost_of(scenario_, key));
  const RequestKey request = request_of(key);
  Artifact artifact;
  artifact.bytes = Bytes::of(std::string(scenario_.entry_bytes, static_cast<char>('a' + key % 26)));
  artifact.target = Target::sm(90);
  artifact.metadata = {"unit " + std::to_string(key), "a sleep", 1e3 * seconds(cost_of(scenario_, key)), ""};
  (void)store_->put(artifact_key(request, {}), artifact, context);
  (void)store_->add_dependency_set(request, {}, context);
}

}  // namespace kiln::fleet
