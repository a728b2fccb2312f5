// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>

#include "cache/claims.hpp"
#include "cache/store.hpp"
#include "events/event_emitter.hpp"
#include "remote/background_queue.hpp"
#include "remote/fleet_claims.hpp"
#include "remote/guarded_store.hpp"
#include "session/config/config.hpp"
#include "trust/namespace_scope.hpp"
#include "trust/policy.hpp"

namespace kiln {

/// The services that a session shares with other hosts, as configured: the remote store and the fleet's claims, each
/// behind its guard, and the background queue that serves both. Nothing is opened and no thread is started before the
/// first request. A component that is not available is reported as an event and omitted. Thread-safe.
class FleetServices {
 public:
  FleetServices(const Config& config, const TrustPolicy& policy, const NamespaceScope& scope,
                const EventEmitter& emitter);
  ~FleetServices();
  FleetServices(const FleetServices&) = delete;
  FleetServices& operator=(const FleetServices&) = delete;

  /// Returns null if there is no remote store.
  const std::shared_ptr<Store>& store() const { return store_; }
  /// Returns another store on the same server for readers that only these namespaces can serve, or null if there is no
  /// server.
  std::shared_ptr<Store> store_within(const NamespaceScope& scope) const;
  Claims* claims() const { return claims_.get(); }
  /// Waits until everything queued so far is sent, at most `timeout`. Returns false if something is left.
  bool drain(std::chrono::nanoseconds timeout) { return background_queue_->drain(timeout); }
  /// Sends what is still queued, within the policy's time limit, and releases held leases.
  void finish();

 private:
  struct Server;

  std::shared_ptr<BackgroundQueue> background_queue_;
  std::unique_ptr<const Server> server_;  // null if there is none
  std::shared_ptr<Store> store_;
  std::unique_ptr<Claims> claims_;
};

}  // namespace kiln
