#include "session/fleet.hpp"

#include "remote/remote_store.hpp"
#include "session/remote_parts.hpp"

namespace kiln {
namespace {

std::shared_ptr<ServerGuard> guard_of(const char* origin, const std::string& name,
                                      std::function<Status(std::chrono::nanoseconds)> probe,
                                      const std::shared_ptr<Courier>& courier, const FleetPolicy& policy,
                                      const Observer& observer) {
  ServerGuard::Parts parts;
  parts.name = name;
  parts.origin = origin;
  parts.probe = std::move(probe);
  parts.courier = courier;
  parts.policy = policy;
  parts.observer = observer;
  return ServerGuard::make(std::move(parts));
}

std::shared_ptr<Store> store_of(const std::shared_ptr<Depot>& depot, std::shared_ptr<const Signer> signer,
                                const TrustPolicy& trust, const std::shared_ptr<ServerGuard>& guard,
                                const std::shared_ptr<Courier>& courier, const FleetPolicy& policy,
                                const Observer& observer) {
  RemoteStore::Parts remote;
  remote.depot = depot;
  remote.policy = std::make_shared<const TrustPolicy>(trust);
  remote.signer = std::move(signer);
  remote.observer = observer;
  remote.write_limit = policy.upload_limit;
  GuardedStore::Parts guarded;
  guarded.inner = std::make_shared<RemoteStore>(std::move(remote));
  guarded.guard = guard;
  guarded.courier = courier;
  guarded.policy = policy;
  guarded.observer = observer;
  return std::make_shared<GuardedStore>(std::move(guarded));
}

}  // namespace

Fleet::Fleet(const Config& config, const TrustPolicy& policy, const Observer& observer) {
  const FleetPolicy numbers = fleet_policy_of(config);
  const auto left_out = [&](const char* what, const Error& error) {
    observer.tell(Event::Kind::Configuration, what, std::string(what) + " is left out: " + error.message);
  };
  courier_ = std::make_shared<Courier>(numbers);
  auto depot = open_depot(config);
  if (!depot) left_out("remote", depot.error());
  auto signer = signer_of(config);
  if (!signer) left_out("remote.sign", signer.error());
  const bool publishes = signer && *signer != nullptr;
  std::shared_ptr<ServerGuard> guard;
  if (depot && *depot != nullptr) {
    guard = guard_of(
        "remote", (*depot)->describe(),
        [asked = *depot](std::chrono::nanoseconds limit) { return asked->probe(limit); }, courier_, numbers, observer);
    store_ = store_of(*depot, publishes ? *signer : nullptr, policy, guard, courier_, numbers, observer);
  }
  // Without a store that hosts share there is nothing to wait for.
  if (store_ == nullptr) return;
  auto table = open_leases(config);
  if (!table) left_out("lease", table.error());
  if (!table || *table == nullptr) return;
  FleetClaims::Parts claims;
  claims.table = *table;
  claims.guard = guard_of(
      "lease", (*table)->describe(), [leases = *table](std::chrono::nanoseconds limit) { return leases->probe(limit); },
      courier_, numbers, observer);
  claims.store = guard;
  claims.courier = courier_;
  claims.policy = numbers;
  claims.observer = observer;
  claims.may_hold = publishes;
  claims.most_held = config.worker_time_limit;
  claims_ = std::make_unique<FleetClaims>(std::move(claims));
}

Fleet::~Fleet() { finish(); }

void Fleet::finish() { courier_->stop(); }

}  // namespace kiln
