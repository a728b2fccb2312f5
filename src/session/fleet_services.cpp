// SPDX-License-Identifier: Apache-2.0
#include "session/fleet_services.hpp"

#include "base/format.hpp"
#include "remote/remote_store.hpp"
#include "session/remote_factory.hpp"

namespace kiln {
namespace {

std::shared_ptr<ServerGuard> make_guard(const char* origin, const std::string& name,
                                        std::function<Status(const Deadline&)> probe,
                                        const std::shared_ptr<BackgroundQueue>& background_queue,
                                        const FleetPolicy& policy, const EventEmitter& emitter) {
  ServerGuard::Params params;
  params.name = name;
  params.origin = origin;
  params.probe = std::move(probe);
  params.background_queue = background_queue;
  params.policy = policy;
  params.emitter = emitter;
  return ServerGuard::make(std::move(params));
}

// Warns about namespaces that are not read. The set of namespaces determines what can be found in a remote store, and a
// miss does not show the cause.
void emit_namespaces(const Config& config, const TrustPolicy& policy, const NamespaceScope& scope,
                     const EventEmitter& emitter) {
  std::vector<std::string> left_out;
  const auto names = remote_namespaces(policy, remote_namespaces_of(config), scope, &left_out);
  std::string problem;
  if (names.empty() && !policy.empty()) {
    problem =
        "nothing is read from the remote store: the trust policy trusts no namespace by name, without a wildcard; "
        "list the namespaces to read in trust.namespaces";
  } else if (!left_out.empty()) {
    problem = "kiln reads at most " + std::to_string(kMaxRemoteNamespaces) +
              " namespaces from the remote store and skips " + join_strings(left_out) +
              "; list the namespaces to read in trust.namespaces";
  }
  if (!problem.empty()) emitter.emit(Event::Kind::ConfigWarning, "remote", problem);
}

}  // namespace

/// The server of the remote store and the parameters of a store on it.
struct FleetServices::Server {
  RemoteStore::Params remote;
  GuardedStore::Params guarded;
};

std::shared_ptr<Store> FleetServices::store_within(const NamespaceScope& scope) const {
  if (server_ == nullptr) return nullptr;
  RemoteStore::Params remote = server_->remote;
  remote.scope = scope;
  GuardedStore::Params guarded = server_->guarded;
  guarded.inner = std::make_shared<RemoteStore>(std::move(remote));
  return std::make_shared<GuardedStore>(std::move(guarded));
}

FleetServices::FleetServices(const Config& config, const TrustPolicy& policy, const NamespaceScope& scope,
                             const EventEmitter& emitter) {
  const FleetPolicy numbers = make_fleet_policy(config);
  const auto left_out = [&](const char* what, const Error& error) {
    emitter.emit(Event::Kind::ConfigWarning, what, std::string(what) + " is not used: " + error.message);
  };
  background_queue_ = std::make_shared<BackgroundQueue>(numbers);
  auto object_store = open_object_store(config);
  if (!object_store) left_out("remote.url", object_store.error());
  auto signer = make_signer(config);
  if (!signer) left_out("remote.signing_key", signer.error());
  const bool publishes = signer && *signer != nullptr;
  std::shared_ptr<ServerGuard> guard;
  if (object_store && *object_store != nullptr) {
    guard = make_guard(
        "remote", (*object_store)->describe(),
        [asked = *object_store](const Deadline& deadline) { return asked->probe(deadline); }, background_queue_,
        numbers, emitter);
    Server server;
    server.remote.object_store = *object_store;
    server.remote.policy = std::make_shared<const TrustPolicy>(policy);
    server.remote.signer = publishes ? *signer : nullptr;
    server.remote.emitter = emitter;
    server.remote.write_limit = numbers.upload_timeout;
    server.remote.namespaces = remote_namespaces_of(config);
    server.remote.publish_logs = config.remote_publish_logs;
    server.guarded.guard = guard;
    server.guarded.background_queue = background_queue_;
    server.guarded.policy = numbers;
    server.guarded.emitter = emitter;
    server_ = std::make_unique<const Server>(std::move(server));
    store_ = store_within(scope);
    if (!publishes) emit_namespaces(config, policy, scope, emitter);
  }
  // Without a shared store there is no result to wait for.
  if (store_ == nullptr) return;
  auto table = open_leases(config);
  if (!table) left_out("lease.url", table.error());
  if (!table || *table == nullptr) return;
  FleetClaims::Params claims;
  claims.table = *table;
  claims.guard = make_guard(
      "lease", (*table)->describe(), [leases = *table](const Deadline& deadline) { return leases->probe(deadline); },
      background_queue_, numbers, emitter);
  claims.store = guard;
  claims.background_queue = background_queue_;
  claims.policy = numbers;
  claims.emitter = emitter;
  claims.can_publish = publishes;
  claims.max_hold = config.worker_time_limit;
  claims_ = std::make_unique<FleetClaims>(std::move(claims));
}

FleetServices::~FleetServices() { finish(); }

void FleetServices::finish() { background_queue_->stop(); }

}  // namespace kiln
